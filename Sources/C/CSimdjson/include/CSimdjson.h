#ifndef HEARTH_CSIMDJSON_H
#define HEARTH_CSIMDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A reusable JSON parser with its buffers. Used by one thread at a time.
typedef struct hearth_json_parser hearth_json_parser;

/// What became of a parse.
typedef enum hearth_json_status {
  hearth_json_ok = 0,
  hearth_json_empty,
  hearth_json_too_large,
  hearth_json_too_deep,
  hearth_json_bad_utf8,
  hearth_json_bad_string,
  hearth_json_bad_number,
  hearth_json_bad_token,
  hearth_json_out_of_memory,
} hearth_json_status;

/// Bytes behind the input that the parser may read (never write) when the caller says that they are there.
enum { hearth_json_padding = 64 };

/// Makes a parser that refuses inputs above `capacity_max` bytes or deeper than `depth_max`; NULL without memory.
hearth_json_parser *_Nullable hearth_json_parser_create(size_t capacity_max, size_t depth_max);

/// Frees a parser.
void hearth_json_parser_destroy(hearth_json_parser *_Nonnull parser);

/// Frees the buffers if they have grown beyond `kept` bytes of input.
void hearth_json_parser_trim(hearth_json_parser *_Nonnull parser, size_t kept);

/// Parses one JSON text. On success `tape` and `strings` point to simdjson's tape and string buffer, valid until the
/// next call with this parser. Unless `is_padded`, the input is copied first.
hearth_json_status hearth_json_parse(
    hearth_json_parser *_Nonnull parser, const uint8_t *_Nonnull bytes, size_t length, bool is_padded,
    const uint64_t *_Nullable *_Nonnull tape, const uint8_t *_Nullable *_Nonnull strings);

/// Whether `length` bytes at `bytes` are valid UTF-8 (no surrogates, no overlong forms).
bool hearth_utf8_is_valid(const void *_Nonnull bytes, size_t length);

/// Room that `hearth_format_double` needs.
enum { hearth_double_text_max = 32 };

/// Writes the shortest decimal text that reads back as the finite `value`; returns its length. Fixed notation for
/// exponents from -4 to 14 (or to the 17th digit where more are significant), as C's "%g" has it; -0 is "-0.0".
size_t hearth_format_double(double value, char *_Nonnull out);

/// Reads a whole text as a JSON number, also one beyond 64 bits; false when it is none or overflows a double.
bool hearth_parse_double(const char *_Nonnull text, size_t length, double *_Nonnull out);

#ifdef __cplusplus
}
#endif
#endif
