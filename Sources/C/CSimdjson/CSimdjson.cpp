#include "CSimdjson.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>

struct hearth_json_parser {
  size_t capacity_max;
  size_t depth_max;
  std::unique_ptr<simdjson::dom::parser> parser;
};

namespace {

constexpr size_t smallest_capacity = 16 << 10;

hearth_json_status status(simdjson::error_code error) {
  switch (error) {
    case simdjson::SUCCESS: return hearth_json_ok;
    case simdjson::EMPTY: return hearth_json_empty;
    case simdjson::CAPACITY: return hearth_json_too_large;
    case simdjson::DEPTH_ERROR: return hearth_json_too_deep;
    case simdjson::UTF8_ERROR: return hearth_json_bad_utf8;
    case simdjson::STRING_ERROR:
    case simdjson::UNESCAPED_CHARS:
    case simdjson::UNCLOSED_STRING: return hearth_json_bad_string;
    case simdjson::NUMBER_ERROR:
    case simdjson::NUMBER_OUT_OF_RANGE: return hearth_json_bad_number;
    case simdjson::MEMALLOC: return hearth_json_out_of_memory;
    default: return hearth_json_bad_token;
  }
}

/// Grows the buffers in powers of two, so that slowly growing requests do not reallocate each time.
simdjson::error_code reserve(hearth_json_parser *parser, size_t length) {
  if (length > parser->capacity_max) return simdjson::CAPACITY;
  if (!parser->parser) {
    parser->parser.reset(new (std::nothrow) simdjson::dom::parser(parser->capacity_max));
    if (!parser->parser) return simdjson::MEMALLOC;
  }
  simdjson::dom::parser &inner = *parser->parser;
  if (inner.capacity() >= length && inner.capacity() > 0) return simdjson::SUCCESS;
  size_t capacity = smallest_capacity;
  while (capacity < length) capacity *= 2;
  simdjson::error_code error = inner.allocate(std::min(capacity, parser->capacity_max), parser->depth_max);
  if (error) return error;
  return inner.doc.allocate(std::min(capacity, parser->capacity_max));
}

bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

/// Whether the decimal digits of a number, negative or not, exceed int64 and uint64.
bool exceeds_64_bits(const uint8_t *digits, size_t count, bool negative) {
  const char *most = negative ? "9223372036854775808" : "18446744073709551615";
  size_t length = std::strlen(most);
  if (count != length) return count > length;
  return std::memcmp(digits, most, length) > 0;
}

/// Copies JSON and appends "e0" to each integer that exceeds 64 bits. simdjson rejects these, but they are valid
/// numbers, and JavaScript prints doubles up to 1e21 without an exponent. Returns an empty string if there are none.
std::string widen_integers(const uint8_t *bytes, size_t length) {
  std::string out;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < length; ++i) {
    uint8_t byte = bytes[i];
    if (in_string) {
      if (byte == '\\') ++i;
      else if (byte == '"') in_string = false;
    } else if (byte == '"') {
      in_string = true;
    } else if (is_digit(byte)) {
      bool negative = i > 0 && bytes[i - 1] == '-';
      size_t end = i;
      while (end < length && is_digit(bytes[end])) ++end;
      size_t digits = end - i;
      bool is_integer = end == length || (bytes[end] != '.' && bytes[end] != 'e' && bytes[end] != 'E');
      if (is_integer && exceeds_64_bits(bytes + i, digits, negative)) {
        out.append(reinterpret_cast<const char *>(bytes) + copied, end - copied);
        out.append("e0");
        copied = end;
      }
      // Skip the rest of a number with a fraction or an exponent, which is not an integer.
      while (end < length && (is_digit(bytes[end]) || std::strchr(".eE+-", bytes[end]))) {
        if (bytes[end] == 0) break;
        ++end;
      }
      i = end - 1;
    }
  }
  if (copied == 0) return out;
  out.append(reinterpret_cast<const char *>(bytes) + copied, length - copied);
  return out;
}

}  // namespace

extern "C" {

hearth_json_parser *hearth_json_parser_create(size_t capacity_max, size_t depth_max) {
  return new (std::nothrow) hearth_json_parser{std::max(capacity_max, smallest_capacity), depth_max, nullptr};
}

void hearth_json_parser_destroy(hearth_json_parser *parser) { delete parser; }

void hearth_json_parser_trim(hearth_json_parser *parser, size_t kept) {
  if (parser->parser && parser->parser->capacity() > kept) parser->parser.reset();
}

hearth_json_status hearth_json_parse(
    hearth_json_parser *parser, const uint8_t *bytes, size_t length, bool is_padded, const uint64_t **tape,
    const uint8_t **strings) {
  simdjson::error_code error = reserve(parser, length);
  if (error) return status(error);
  error = parser->parser->parse(bytes, length, !is_padded).error();
  if (error == simdjson::NUMBER_ERROR) {
    try {
      std::string widened = widen_integers(bytes, length);
      if (!widened.empty()) {
        error = reserve(parser, widened.size());
        if (error) return status(error);
        error = parser->parser->parse(
            reinterpret_cast<const uint8_t *>(widened.data()), widened.size(), true).error();
      }
    } catch (const std::bad_alloc &) {
      return hearth_json_out_of_memory;
    }
  }
  if (error) return status(error);
  *tape = parser->parser->doc.tape.get();
  *strings = parser->parser->doc.string_buf.get();
  return hearth_json_ok;
}

bool hearth_utf8_is_valid(const void *bytes, size_t length) {
  return simdjson::validate_utf8(static_cast<const char *>(bytes), length);
}

namespace {

// Writes a positive value that is a decimal of at most 15 digits, six of them after the point. Returns the end, or null
// for any other value.
//
// Different decimals of at most 15 digits are different doubles, so the decimal that reads back as the value is its
// shortest text. The quotient of two exact doubles is rounded like a text that is read.
char *format_short_decimal(double value, char *to) {
  static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
  static const uint64_t integers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
  if (!(value >= 1e-4 && value < 1e15)) return nullptr;
  for (int places = 0; places <= 6; ++places) {
    double scaled = value * powers[places];
    if (scaled >= 999999999999999.0) return nullptr;
    uint64_t decimal = static_cast<uint64_t>(scaled + 0.5);
    if (static_cast<double>(decimal) / powers[places] != value) continue;
    while (places > 0 && decimal % 10 == 0) {
      decimal /= 10;
      --places;
    }
    to = std::to_chars(to, to + 16, decimal / integers[places]).ptr;
    if (places == 0) return to;
    *to = '.';
    uint64_t fraction = decimal % integers[places];
    for (int place = places; place > 0; --place, fraction /= 10) to[place] = static_cast<char>('0' + fraction % 10);
    return to + places + 1;
  }
  return nullptr;
}

}  // namespace

size_t hearth_format_double(double value, char *out) {
  char *to = out;
  if (std::signbit(value)) {
    *to++ = '-';
    value = -value;
  }
  if (value == 0) {
    const char *zero = to == out ? "0" : "0.0";
    size_t count = std::strlen(zero);
    std::memcpy(to, zero, count);
    return static_cast<size_t>(to - out) + count;
  }
  if (char *end = format_short_decimal(value, to)) return static_cast<size_t>(end - out);
  // "d.ddde±xx": the shortest digits and the exponent.
  char text[hearth_double_text_max];
  auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  const char *e = std::find(text, end, 'e');
  char digits[24];
  int count = 0;
  for (const char *p = text; p < e; ++p) {
    if (*p != '.') digits[count++] = *p;
  }
  int exponent = 0;
  std::from_chars(e + (e[1] == '+' ? 2 : 1), end, exponent);
  if (exponent >= -4 && exponent < (count > 15 ? 17 : 15)) {
    if (exponent < 0) {
      *to++ = '0';
      *to++ = '.';
      for (int i = -1; i > exponent; --i) *to++ = '0';
      for (int i = 0; i < count; ++i) *to++ = digits[i];
    } else {
      for (int i = 0; i < std::max(count, exponent + 1); ++i) {
        if (i == exponent + 1) *to++ = '.';
        *to++ = i < count ? digits[i] : '0';
      }
    }
  } else {
    std::memcpy(to, text, static_cast<size_t>(end - text));
    to += end - text;
  }
  return static_cast<size_t>(to - out);
}

bool hearth_parse_double(const char *text, size_t length, double *out) {
  // from_chars accepts "inf" and "nan", which are not valid JSON, and does not accept a leading "+".
  const char *first = text + (length > 0 && text[0] == '-' ? 1 : 0);
  const char *end = text + length;
  if (first == end || !is_digit(static_cast<uint8_t>(*first))) return false;
  auto result = std::from_chars(text, end, *out, std::chars_format::general);
  return result.ec == std::errc() && result.ptr == end;
}

}  // extern "C"
