/// Regular expressions for security rules: a C interface to RE2, whose time is linear in the text.
///
/// Texts are UTF-8 without a terminating zero. A compiled pattern never changes, so many threads can use it at once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled pattern.
typedef struct hearth_pattern hearth_pattern;

/// Compiles a pattern. Returns NULL if RE2 rejects it or memory runs out. The pattern uses at most `memory_max`
/// bytes.
hearth_pattern *_Nullable hearth_pattern_create(const void *_Nullable text, size_t length, size_t memory_max);

/// Frees a pattern.
void hearth_pattern_destroy(hearth_pattern *_Nonnull pattern);

/// Returns the number of capturing groups.
int hearth_pattern_group_count(const hearth_pattern *_Nonnull pattern);

/// Returns the number of the group with this name, or -1.
int hearth_pattern_group_named(const hearth_pattern *_Nonnull pattern, const void *_Nullable name, size_t length);

/// Returns the number of instructions of the compiled pattern.
int hearth_pattern_size(const hearth_pattern *_Nonnull pattern);

/// Whether the pattern matches the complete text.
bool hearth_pattern_matches(const hearth_pattern *_Nonnull pattern, const void *_Nullable text, size_t length);

/// Finds the first match at or after `start`.
///
/// Fills `bounds` with the start and end of the match and of the first `group_count - 1` groups, in bytes. A group
/// that did not take part has -1.
bool hearth_pattern_find(
    const hearth_pattern *_Nonnull pattern, const void *_Nullable text, size_t length, size_t start,
    ptrdiff_t *_Nonnull bounds, int group_count);

#ifdef __cplusplus
}
#endif
