/// libcurl, which the first request loads. A server never loads it: it would add 20 libraries, 1.5 MB of memory and
/// 5 ms to every start.
///
/// Each function `hearth_NAME` calls libcurl's function `NAME`. Swift must not call libcurl's own functions, which are
/// not linked.
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

/// Loads and initializes libcurl. Returns NULL, or the reason why that failed. Call no other function before this one
/// has succeeded. Calls must not overlap.
const char *_Nullable hearth_curl_load(void);

CURL *_Nullable hearth_curl_easy_init(void);
void hearth_curl_easy_cleanup(CURL *_Nonnull easy);
const char *_Nonnull hearth_curl_easy_strerror(CURLcode code);

// `curl_easy_setopt` takes arguments of any type, so Swift cannot call it. These return CURLE_OK unless the option is
// unknown or memory runs out.
CURLcode hearth_curl_set_long(CURL *_Nonnull easy, CURLoption option, long value);
CURLcode hearth_curl_set_size(CURL *_Nonnull easy, CURLoption option, curl_off_t value);
/// Sets an option that takes text, a list or a pointer for callbacks. libcurl copies text, but not lists.
CURLcode hearth_curl_set_pointer(CURL *_Nonnull easy, CURLoption option, const void *_Nullable value);

/// The callbacks of a request. Each gets the pointer that ``hearth_curl_set_callbacks`` received.
typedef struct hearth_curl_callbacks {
  curl_opensocket_callback _Nonnull socket;
  curl_prereq_callback _Nonnull begin;
  curl_write_callback _Nonnull header;
  curl_write_callback _Nonnull body;
  curl_read_callback _Nonnull upload;
  curl_seek_callback _Nonnull rewind;
} hearth_curl_callbacks;

CURLcode hearth_curl_set_callbacks(CURL *_Nonnull easy, hearth_curl_callbacks callbacks, void *_Nonnull pointer);

/// Returns an integer that `curl_easy_getinfo` reports: a number, a size or a time in microseconds. 0 if unknown.
long hearth_curl_get(CURL *_Nonnull easy, CURLINFO info);

/// Returns the list with a copy of the text appended, or NULL if memory runs out.
struct curl_slist *_Nullable hearth_curl_slist_append(
    struct curl_slist *_Nullable list, const char *_Nonnull text);
void hearth_curl_slist_free_all(struct curl_slist *_Nullable list);

CURLM *_Nullable hearth_curl_multi_init(void);
void hearth_curl_multi_cleanup(CURLM *_Nonnull multi);
CURLMcode hearth_curl_multi_add_handle(CURLM *_Nonnull multi, CURL *_Nonnull easy);
CURLMcode hearth_curl_multi_remove_handle(CURLM *_Nonnull multi, CURL *_Nonnull easy);
CURLMcode hearth_curl_multi_perform(CURLM *_Nonnull multi);
CURLMcode hearth_curl_multi_poll(CURLM *_Nonnull multi, int milliseconds);
/// Ends a poll in another thread.
CURLMcode hearth_curl_multi_wakeup(CURLM *_Nonnull multi);
/// Returns whether a transfer has ended, and sets its result.
bool hearth_curl_multi_take_result(CURLM *_Nonnull multi, CURLcode *_Nonnull result);
