#include "CICU.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The types and constants below are part of ICU's stable C interface, which does not change between versions. Only the
// names of the functions contain the version.
typedef int32_t status;

enum { word_breaks = 1, done = -1, first_word_status = 100, oldest_version = 60, newest_version = 150 };

static struct {
  void *(*open_text)(void *text, const char *bytes, int64_t count, status *status);
  void *(*close_text)(void *text);
  void *(*open)(int32_t type, const char *locale, const uint16_t *text, int32_t count, status *status);
  void (*close)(void *breaks);
  void (*set_text)(void *breaks, void *text, status *status);
  int32_t (*first)(void *breaks);
  int32_t (*next)(void *breaks);
  int32_t (*rule_status)(void *breaks);
  const void *(*casefold)(status *status);
  int32_t (*normalize)(const void *normalizer, const uint16_t *text, int32_t count, uint16_t *out, int32_t capacity,
                       status *status);
  uint16_t *(*from_utf8)(uint16_t *out, int32_t capacity, int32_t *out_count, const char *text, int32_t count,
                         int32_t substitute, int32_t *substitutions, status *status);
  char *(*to_utf8)(char *out, int32_t capacity, int32_t *out_count, const uint16_t *text, int32_t count,
                   int32_t substitute, int32_t *substitutions, status *status);
  void (*version)(uint8_t version[4]);
  const void *normalizer;
} icu;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256];
static char version[32];

static void *function(void *library, const char *name, int number) {
  char full[64];
  snprintf(full, sizeof full, "%s_%d", name, number);
  void *found = dlsym(library, full);
  if (!found) snprintf(reason, sizeof reason, "libicuuc.so.%d has no function %s", number, full);
  return found;
}

static void load(void) {
  void *library = NULL;
  int number = oldest_version;
  for (; number <= newest_version; number++) {
    char name[32];
    snprintf(name, sizeof name, "libicuuc.so.%d", number);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library) break;
  }
  if (!library) {
    snprintf(reason, sizeof reason, "libicuuc.so cannot be opened");
    return;
  }
  *(void **)&icu.open_text = function(library, "utext_openUTF8", number);
  *(void **)&icu.close_text = function(library, "utext_close", number);
  *(void **)&icu.open = function(library, "ubrk_open", number);
  *(void **)&icu.close = function(library, "ubrk_close", number);
  *(void **)&icu.set_text = function(library, "ubrk_setUText", number);
  *(void **)&icu.first = function(library, "ubrk_first", number);
  *(void **)&icu.next = function(library, "ubrk_next", number);
  *(void **)&icu.rule_status = function(library, "ubrk_getRuleStatus", number);
  *(void **)&icu.casefold = function(library, "unorm2_getNFKCCasefoldInstance", number);
  *(void **)&icu.normalize = function(library, "unorm2_normalize", number);
  *(void **)&icu.from_utf8 = function(library, "u_strFromUTF8WithSub", number);
  *(void **)&icu.to_utf8 = function(library, "u_strToUTF8WithSub", number);
  *(void **)&icu.version = function(library, "u_getVersion", number);
  if (reason[0]) return;
  status status = 0;
  icu.normalizer = icu.casefold(&status);
  if (status > 0 || !icu.normalizer) {
    snprintf(reason, sizeof reason, "ICU cannot open its data for case folding: error %d", status);
    return;
  }
  uint8_t parts[4];
  icu.version(parts);
  snprintf(version, sizeof version, "%d.%d.%d.%d", parts[0], parts[1], parts[2], parts[3]);
}

const char *hearth_icu_load(void) {
  pthread_once(&once, load);
  return reason[0] ? reason : NULL;
}

const char *hearth_icu_version(void) { return version; }

struct words {
  void *breaks;
  void *text;
  int32_t start;
};

void *hearth_words_create(const char *language) {
  struct words *words = calloc(1, sizeof *words);
  if (!words) return NULL;
  status status = 0;
  words->breaks = icu.open(word_breaks, language, NULL, 0, &status);
  if (status <= 0 && words->breaks) return words;
  hearth_words_destroy(words);
  return NULL;
}

void hearth_words_destroy(void *pointer) {
  struct words *words = pointer;
  if (words->breaks) icu.close(words->breaks);
  if (words->text) icu.close_text(words->text);
  free(words);
}

int hearth_words_begin(void *pointer, const char *text, int64_t count) {
  struct words *words = pointer;
  status status = 0;
  words->text = icu.open_text(words->text, text, count, &status);
  if (status > 0) return 0;
  icu.set_text(words->breaks, words->text, &status);
  if (status > 0) return 0;
  words->start = icu.first(words->breaks);
  return 1;
}

int hearth_words_next(void *pointer, int32_t *start, int32_t *end) {
  struct words *words = pointer;
  while (words->start != done) {
    int32_t next = icu.next(words->breaks);
    *start = words->start;
    *end = next;
    words->start = next;
    if (next != done && icu.rule_status(words->breaks) >= first_word_status) return 1;
  }
  return 0;
}

int32_t hearth_words_fold(const char *word, int32_t count, char *out, int32_t capacity) {
  enum { units = 1024 };
  uint16_t wide[units], folded[units];
  int32_t wide_count = 0, folded_count = 0, out_count = 0;
  status status = 0;
  icu.from_utf8(wide, units, &wide_count, word, count, 0xFFFD, NULL, &status);
  if (status > 0) return -1;
  folded_count = icu.normalize(icu.normalizer, wide, wide_count, folded, units, &status);
  if (status > 0) return -1;
  icu.to_utf8(out, capacity, &out_count, folded, folded_count, 0xFFFD, NULL, &status);
  return status > 0 || out_count > capacity ? -1 : out_count;
}
