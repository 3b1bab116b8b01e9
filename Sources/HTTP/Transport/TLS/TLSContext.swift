import COpenSSL
import Glibc
import Synchronization

/// A certificate with its key, and what TLS connections share. Never changes once made.
final class TLSContext: @unchecked Sendable {
  // Sendable: OpenSSL allows a context that is set up to be used by any number of threads.

  let raw: OpaquePointer

  /// Reads the files.
  init(_ configuration: TLSConfiguration) throws(TransportError) {
    ERR_clear_error()
    guard let raw = SSL_CTX_new(TLS_server_method()), copenssl_harden(raw) == 1 else {
      throw .resourceExhausted(what: "a TLS context", reason: Self.reason())
    }
    self.raw = raw
    // A key with a passphrase would have OpenSSL ask the terminal for it.
    SSL_CTX_set_default_passwd_cb(raw) { _, _, _, _ in 0 }
    SSL_CTX_set_alpn_select_cb(raw, { _, chosen, count, offered, offeredCount, _ in
      TLSContext.choose(chosen, count, from: offered, offeredCount)
    }, nil)
    guard SSL_CTX_use_certificate_chain_file(raw, configuration.certificateFile) == 1 else {
      throw .badCertificate(file: configuration.certificateFile, reason: Self.reason())
    }
    guard SSL_CTX_use_PrivateKey_file(raw, configuration.keyFile, SSL_FILETYPE_PEM) == 1,
      SSL_CTX_check_private_key(raw) == 1
    else { throw .badCertificate(file: configuration.keyFile, reason: Self.reason()) }
  }

  deinit {
    SSL_CTX_free(raw)
  }

  /// The protocols spoken, in the order preferred, as ALPN writes them.
  private static let protocols: StaticString = "\u{2}h2\u{8}http/1.1"

  private static func choose(
    _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ count: UnsafeMutablePointer<UInt8>?,
    from offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32
  ) -> Int32 {
    guard let chosen, let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    var found: UnsafeMutablePointer<UInt8>?
    let outcome = SSL_select_next_proto(
      &found, count, protocols.utf8Start, UInt32(protocols.utf8CodeUnitCount), offered, offeredCount)
    chosen.pointee = UnsafePointer(found)
    return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
  }

  /// The text of the oldest error that OpenSSL keeps for this thread.
  private static func reason() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    // Errors of the system are marked by the highest bit of 32.
    if code & 0x8000_0000 != 0 { return String(cString: strerror(Int32(code & 0x7fff_ffff))) }
    guard code != 0, let text = ERR_reason_error_string(code) else { return "the file cannot be used" }
    return String(cString: text)
  }
}

/// The context that new connections use; it may be replaced while older connections keep theirs.
final class TLSCredentials: Sendable {
  private let configuration: TLSConfiguration
  private let context: Mutex<TLSContext>

  init(_ configuration: TLSConfiguration) throws(TransportError) {
    self.configuration = configuration
    context = Mutex(try TLSContext(configuration))
  }

  var current: TLSContext { context.withLock { $0 } }

  /// Reads the files again. When they cannot be used, all stays as it was.
  func reload() throws(TransportError) {
    let renewed = try TLSContext(configuration)
    context.withLock { $0 = renewed }
  }
}
