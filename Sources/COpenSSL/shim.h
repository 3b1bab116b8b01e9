#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

// OpenSSL's setters are macros, which Swift cannot see.
static inline int copenssl_set_minimum_tls12(SSL_CTX *context) {
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

static inline void copenssl_release_idle_buffers(SSL_CTX *context) {
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline void copenssl_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline void copenssl_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
