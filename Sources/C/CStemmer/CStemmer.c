#include "CStemmer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct {
  void *(*create)(const char *algorithm, const char *encoding);
  void (*destroy)(void *stemmer);
  const unsigned char *(*stem)(void *stemmer, const unsigned char *word, int count);
  int (*length)(void *stemmer);
} loaded;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char reason[256];

static void *function(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) snprintf(reason, sizeof reason, "libstemmer.so.0d has no function %s", name);
  return found;
}

static void load(void) {
  void *library = dlopen("libstemmer.so.0d", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, sizeof reason, "%s", dlerror());
    return;
  }
  *(void **)&loaded.create = function(library, "sb_stemmer_new");
  *(void **)&loaded.destroy = function(library, "sb_stemmer_delete");
  *(void **)&loaded.stem = function(library, "sb_stemmer_stem");
  *(void **)&loaded.length = function(library, "sb_stemmer_length");
}

const char *hearth_stemmer_load(void) {
  pthread_once(&once, load);
  return reason[0] ? reason : NULL;
}

void *hearth_stemmer_create(const char *language) { return loaded.create(language, "UTF_8"); }

void hearth_stemmer_destroy(void *stemmer) { loaded.destroy(stemmer); }

const unsigned char *hearth_stemmer_stem(void *stemmer, const unsigned char *word, int count, int *stem_count) {
  const unsigned char *stem = loaded.stem(stemmer, word, count);
  if (stem) *stem_count = loaded.length(stemmer);
  return stem;
}
