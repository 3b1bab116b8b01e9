/// Regular expressions of security rules: a C face of RE2, whose time is linear in the text.
///
/// Texts are UTF-8 that need not end in zero. A compiled pattern never changes and may be used by many threads at once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled pattern.
typedef struct hearth_pattern hearth_pattern;

/// Compiles a pattern; NULL when RE2 rejects it or memory runs out. `memory_max` bounds what it may use, in bytes.
hearth_pattern *_Nullable hearth_pattern_create(const void *_Nullable text, size_t length, size_t memory_max);

/// Frees a pattern.
void hearth_pattern_destroy(hearth_pattern *_Nonnull pattern);

/// How many capturing groups the pattern has.
int hearth_pattern_group_count(const hearth_pattern *_Nonnull pattern);

/// The number of the group of that name, or -1.
int hearth_pattern_group_named(const hearth_pattern *_Nonnull pattern, const void *_Nullable name, size_t length);

/// Whether the pattern covers the whole text.
bool hearth_pattern_matches(const hearth_pattern *_Nonnull pattern, const void *_Nullable text, size_t length);

/// Finds the first match at or behind `start`.
///
/// Fills `bounds` with the start and end of the match and of the first `group_count - 1` groups, in bytes; -1 for a
/// group that took no part.
bool hearth_pattern_find(
    const hearth_pattern *_Nonnull pattern, const void *_Nullable text, size_t length, size_t start,
    ptrdiff_t *_Nonnull bounds, int group_count);

#ifdef __cplusplus
}
#endif
