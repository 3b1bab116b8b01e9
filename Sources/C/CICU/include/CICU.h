#pragma once

#include <stdint.h>

// The words of texts, by ICU (Debian: libicu72 or a later version). The library is not linked: hearth_icu_load loads
// it, so that a server that searches no texts does not need it.

// Loads the library, or does nothing if it is loaded. Returns NULL, or the reason for the failure. Thread-safe.
const char *hearth_icu_load(void);

// The version of the loaded library, such as "72.1.0.0". The words of a text may differ between versions.
const char *hearth_icu_version(void);

// Creates a divider of texts for a language, such as "en". Returns NULL if ICU cannot. The library must be loaded. Use a
// divider on one thread at a time.
void *hearth_words_create(const char *language);

void hearth_words_destroy(void *words);

// Starts with a text in UTF-8, which must stay in place until hearth_words_next has returned 0. Returns 0 on failure.
int hearth_words_begin(void *words, const char *text, int64_t count);

// Finds the next word, as the standard annex 29 of Unicode defines it, and sets its bounds in bytes. Skips spaces,
// punctuation and symbols. Returns 0 at the end of the text.
int hearth_words_next(void *words, int32_t *start, int32_t *end);

// Writes a word without differences of case and compatibility (NFKC_Casefold) to `out`. Returns its length in bytes, or
// -1 if it does not fit.
int32_t hearth_words_fold(const char *word, int32_t count, char *out, int32_t capacity);
