#ifndef HEARTH_CSIMDJSON_H
#define HEARTH_CSIMDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Whether `length` bytes at `bytes` are valid UTF-8 (no surrogates, no overlong forms).
bool hearth_utf8_is_valid(const void *_Nonnull bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
