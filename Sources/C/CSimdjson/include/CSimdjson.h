#ifndef HEARTH_CSIMDJSON_H
#define HEARTH_CSIMDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A reusable JSON parser with its buffers. Use it from one thread at a time.
typedef struct hearth_json_parser hearth_json_parser;

/// The outcome of a parse.
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

/// The number of bytes after the input that the parser may read (never write) if the caller sets `is_padded`.
enum { hearth_json_padding = 64 };

/// Creates a parser that rejects inputs of more than `capacity_max` bytes or deeper than `depth_max`. Returns NULL
/// if memory is exhausted.
hearth_json_parser *_Nullable hearth_json_parser_create(size_t capacity_max, size_t depth_max);

/// Frees a parser.
void hearth_json_parser_destroy(hearth_json_parser *_Nonnull parser);

/// Frees the buffers if they have grown beyond `kept` bytes of input.
void hearth_json_parser_trim(hearth_json_parser *_Nonnull parser, size_t kept);

/// Parses one JSON text. On success, `tape` and `strings` point to simdjson's tape and string buffer, valid until
/// the next call with this parser. Copies the input first unless `is_padded`.
hearth_json_status hearth_json_parse(
    hearth_json_parser *_Nonnull parser, const uint8_t *_Nonnull bytes, size_t length, bool is_padded,
    const uint64_t *_Nullable *_Nonnull tape, const uint8_t *_Nullable *_Nonnull strings);

/// Whether the bytes are valid UTF-8, without surrogates and overlong forms.
bool hearth_utf8_is_valid(const void *_Nonnull bytes, size_t length);

/// The buffer size for `hearth_format_double`.
enum { hearth_double_text_max = 32 };

/// Writes the shortest decimal text that reads back as the finite `value`. Returns its length. Uses fixed notation
/// for exponents from -4 to 14 (or up to the 17th digit if more digits are significant), like C's "%g". -0 becomes
/// "-0.0".
size_t hearth_format_double(double value, char *_Nonnull out);

/// Reads a complete text as a JSON number, including integers beyond 64 bits. Returns false if the text is not a
/// number or overflows a double.
bool hearth_parse_double(const char *_Nonnull text, size_t length, double *_Nonnull out);

#ifdef __cplusplus
}
#endif
#endif
