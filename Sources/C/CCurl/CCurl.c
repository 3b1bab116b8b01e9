#include "CCurl.h"

#include <dlfcn.h>
#include <stdio.h>

// The oldest version with all options in use: CURLOPT_PROTOCOLS_STR.
#define VERSION_MIN 0x075500

#define FUNCTIONS(F) \
  F(curl_global_init) F(curl_version_info) \
  F(curl_easy_init) F(curl_easy_cleanup) F(curl_easy_setopt) F(curl_easy_getinfo) F(curl_easy_strerror) \
  F(curl_slist_append) F(curl_slist_free_all) \
  F(curl_multi_init) F(curl_multi_cleanup) F(curl_multi_add_handle) F(curl_multi_remove_handle) \
  F(curl_multi_perform) F(curl_multi_poll) F(curl_multi_wakeup) F(curl_multi_info_read)

// The loaded functions, with the types of curl.h: `loaded.curl_easy_init` and so on.
#define DECLARE(name) __typeof__(name) *name;
static struct { FUNCTIONS(DECLARE) } loaded;

// curl.h defines these as macros, which would replace the members' names.
#undef curl_easy_setopt
#undef curl_easy_getinfo

const char *hearth_curl_load(void) {
  static char reason[256];
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, sizeof reason, "%s", dlerror());
    return reason;
  }
#define LOAD(name) \
  loaded.name = (__typeof__(name) *)dlsym(library, #name); \
  if (!loaded.name) { \
    snprintf(reason, sizeof reason, "libcurl.so.4 has no function " #name); \
    return reason; \
  }
  FUNCTIONS(LOAD)
  const curl_version_info_data *version = loaded.curl_version_info(CURLVERSION_NOW);
  if (version->version_num < VERSION_MIN || !(version->features & CURL_VERSION_SSL)) {
    snprintf(reason, sizeof reason, "libcurl.so.4 has version %s, but 7.85 or later with TLS is necessary",
             version->version);
    return reason;
  }
  CURLcode code = loaded.curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code == CURLE_OK) return NULL;
  snprintf(reason, sizeof reason, "libcurl.so.4 cannot be initialized: %s", loaded.curl_easy_strerror(code));
  return reason;
}

CURL *hearth_curl_easy_init(void) { return loaded.curl_easy_init(); }

void hearth_curl_easy_cleanup(CURL *easy) { loaded.curl_easy_cleanup(easy); }

const char *hearth_curl_easy_strerror(CURLcode code) { return loaded.curl_easy_strerror(code); }

CURLcode hearth_curl_set_long(CURL *easy, CURLoption option, long value) {
  return loaded.curl_easy_setopt(easy, option, value);
}

CURLcode hearth_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
  return loaded.curl_easy_setopt(easy, option, value);
}

CURLcode hearth_curl_set_pointer(CURL *easy, CURLoption option, const void *value) {
  return loaded.curl_easy_setopt(easy, option, value);
}

CURLcode hearth_curl_set_callbacks(CURL *easy, hearth_curl_callbacks callbacks, void *pointer) {
  struct { CURLoption option; void *value; } settings[] = {
    {CURLOPT_OPENSOCKETFUNCTION, callbacks.socket}, {CURLOPT_OPENSOCKETDATA, pointer},
    {CURLOPT_PREREQFUNCTION, callbacks.begin}, {CURLOPT_PREREQDATA, pointer},
    {CURLOPT_HEADERFUNCTION, callbacks.header}, {CURLOPT_HEADERDATA, pointer},
    {CURLOPT_WRITEFUNCTION, callbacks.body}, {CURLOPT_WRITEDATA, pointer},
    {CURLOPT_READFUNCTION, callbacks.upload}, {CURLOPT_READDATA, pointer},
    {CURLOPT_SEEKFUNCTION, callbacks.rewind}, {CURLOPT_SEEKDATA, pointer},
  };
  CURLcode code = CURLE_OK;
  for (size_t i = 0; i < sizeof settings / sizeof *settings && code == CURLE_OK; i++)
    code = loaded.curl_easy_setopt(easy, settings[i].option, settings[i].value);
  return code;
}

long hearth_curl_get(CURL *easy, CURLINFO info) {
  // A `long` and a `curl_off_t` have the same size on the 64-bit systems that hearth supports.
  _Static_assert(sizeof(long) == sizeof(curl_off_t), "a 64-bit system");
  long value = 0;
  return loaded.curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

struct curl_slist *hearth_curl_slist_append(struct curl_slist *list, const char *text) {
  return loaded.curl_slist_append(list, text);
}

void hearth_curl_slist_free_all(struct curl_slist *list) { loaded.curl_slist_free_all(list); }

CURLM *hearth_curl_multi_init(void) { return loaded.curl_multi_init(); }

void hearth_curl_multi_cleanup(CURLM *multi) { loaded.curl_multi_cleanup(multi); }

CURLMcode hearth_curl_multi_add_handle(CURLM *multi, CURL *easy) { return loaded.curl_multi_add_handle(multi, easy); }

CURLMcode hearth_curl_multi_remove_handle(CURLM *multi, CURL *easy) {
  return loaded.curl_multi_remove_handle(multi, easy);
}

CURLMcode hearth_curl_multi_perform(CURLM *multi) {
  int running;
  return loaded.curl_multi_perform(multi, &running);
}

CURLMcode hearth_curl_multi_poll(CURLM *multi, int milliseconds) {
  return loaded.curl_multi_poll(multi, NULL, 0, milliseconds, NULL);
}

CURLMcode hearth_curl_multi_wakeup(CURLM *multi) { return loaded.curl_multi_wakeup(multi); }

bool hearth_curl_multi_take_result(CURLM *multi, CURLcode *result) {
  int left;
  CURLMsg *message = loaded.curl_multi_info_read(multi, &left);
  if (!message || message->msg != CURLMSG_DONE) return false;
  *result = message->data.result;
  return true;
}
