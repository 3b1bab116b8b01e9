#include <zlib.h>

// zlib's initializers are macros, which Swift cannot see. 15 is the largest window, and adding 16 selects gzip
// framing.
static inline int czlib_deflate_init_gzip(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

static inline int czlib_inflate_init_gzip(z_stream *stream) {
  return inflateInit2(stream, 15 + 16);
}

static inline int czlib_inflate_init_raw(z_stream *stream) {
  return inflateInit2(stream, -15);
}

// CRC-32C (Castagnoli), eight bytes per instruction if the processor has such an instruction.
#if defined(__x86_64__)
static inline int czlib_has_crc32c(void) { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2")))
static inline unsigned int czlib_crc32c(unsigned int sum, const unsigned char *bytes, unsigned long count) {
  unsigned long long wide = ~sum;
  for (; count >= 8; count -= 8, bytes += 8) {
    unsigned long long word;
    __builtin_memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  unsigned int narrow = (unsigned int)wide;
  for (; count > 0; count--, bytes++) narrow = __builtin_ia32_crc32qi(narrow, *bytes);
  return ~narrow;
}
#else
static inline int czlib_has_crc32c(void) { return 0; }
static inline unsigned int czlib_crc32c(unsigned int sum, const unsigned char *bytes, unsigned long count) {
  return sum;
}
#endif
