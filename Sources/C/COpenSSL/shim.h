#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

// OpenSSL's settings are macros, which Swift cannot see: TLS 1.2 or later, no renegotiation, no compression, and no
// record buffers while a connection is idle. Returns 0 if the library refuses.
static inline int copenssl_harden(SSL_CTX *context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Session tickets need no memory on the server.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

// Also macros.
static inline void copenssl_retry_read_later(BIO *bio) { BIO_set_retry_read(bio); }
static inline void copenssl_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
