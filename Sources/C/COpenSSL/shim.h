#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
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

// Also a macro.
static inline int copenssl_only_tls13(SSL_CTX *context) {
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
}

// Counts the records of a client that carry handshake messages. Of TLS 1.2, a record's header names its type; of TLS
// 1.3, the decrypted record does.
static inline void copenssl_note_record(int is_sent, int version, int kind, const void *bytes, size_t count, SSL *ssl,
                                        void *counter) {
  (void)version;
  (void)ssl;
  if (is_sent || count == 0 || (kind != SSL3_RT_HEADER && kind != SSL3_RT_INNER_CONTENT_TYPE)) return;
  if (*(const unsigned char *)bytes == SSL3_RT_HANDSHAKE) ++*(int *)counter;
}

static inline void copenssl_count_handshake_records(SSL *ssl, int *counter) {
  SSL_set_msg_callback(ssl, copenssl_note_record);
  SSL_set_msg_callback_arg(ssl, counter);
}

// Also macros.
static inline void copenssl_retry_read_later(BIO *bio) { BIO_set_retry_read(bio); }
static inline void copenssl_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
