#include "CSimdjson.h"

#include <simdjson.h>

extern "C" bool hearth_utf8_is_valid(const void *bytes, size_t length) {
  return simdjson::validate_utf8(static_cast<const char *>(bytes), length);
}
