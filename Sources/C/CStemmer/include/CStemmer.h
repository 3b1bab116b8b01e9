#pragma once

// Snowball's stemmers (Debian: libstemmer0d). The library is not linked: hearth_stemmer_load loads it, so that a server
// that searches no texts does not need it.

// Loads the library, or does nothing if it is loaded. Returns NULL, or the reason for the failure. Thread-safe.
const char *hearth_stemmer_load(void);

// Creates a stemmer for UTF-8 text, given an ISO 639 code such as "en". Returns NULL if there is none for the language.
// The library must be loaded. Use a stemmer on one thread at a time.
void *hearth_stemmer_create(const char *language);

void hearth_stemmer_destroy(void *stemmer);

// Returns the stem of a lowercase word and sets its length. The stem is valid until the next call for the stemmer.
// Returns NULL if the system has no memory.
const unsigned char *hearth_stemmer_stem(void *stemmer, const unsigned char *word, int count, int *stem_count);
