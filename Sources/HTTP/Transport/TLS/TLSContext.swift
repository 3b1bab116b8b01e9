import COpenSSL
import Glibc
import Synchronization

/// A certificate with its key, and the settings that TLS connections share. Never changes after creation.
final class TLSContext: @unchecked Sendable {
  // Sendable: OpenSSL allows any number of threads to use a context after its setup.

  let raw: OpaquePointer
  /// The key of connections between nodes, which OpenSSL reads during handshakes.
  private let secret: UnsafeMutableRawBufferPointer?

  /// Creates the settings of connections between nodes, of the side that connects or of the side that accepts.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if memory is exhausted.
  init(_ key: NodeKey, isClient: Bool) throws(TransportError) {
    ERR_clear_error()
    guard let raw = SSL_CTX_new(isClient ? TLS_client_method() : TLS_server_method()) else {
      throw .resourceExhausted(what: "a TLS context", reason: Self.reason())
    }
    let secret = UnsafeMutableRawBufferPointer.allocate(byteCount: NodeKey.byteCount, alignment: 8)
    self.raw = raw
    self.secret = secret
    guard let start = secret.baseAddress, key.derive("hearth-peer/1 tls", into: secret),
      PeerCredentials.prepare(raw, secret: start, isClient: isClient)
    else { throw .resourceExhausted(what: "a TLS context", reason: Self.reason()) }
  }

  /// Reads the certificate and key files.
  /// - Throws: ``TransportError/badCertificate(file:reason:)`` if a file cannot be used,
  ///   ``TransportError/resourceExhausted(what:reason:)`` if memory is exhausted.
  init(_ configuration: TLSConfiguration) throws(TransportError) {
    ERR_clear_error()
    guard let raw = SSL_CTX_new(TLS_server_method()), copenssl_harden(raw) == 1 else {
      throw .resourceExhausted(what: "a TLS context", reason: Self.reason())
    }
    self.raw = raw
    secret = nil
    // Without this callback, OpenSSL would prompt on the terminal for the passphrase of a key.
    SSL_CTX_set_default_passwd_cb(raw) { _, _, _, _ in 0 }
    SSL_CTX_set_alpn_select_cb(
      raw,
      { _, chosen, count, offered, offeredCount, _ in
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
    if let secret {
      OPENSSL_cleanse(secret.baseAddress, secret.count)
      secret.deallocate()
    }
  }

  /// The supported protocols in the wire format of ALPN, the preferred one first.
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

  /// Returns the text of the oldest error that OpenSSL holds for this thread.
  private static func reason() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    // The highest of 32 bits marks system errors.
    if code & 0x8000_0000 != 0 { return String(cString: strerror(Int32(code & 0x7fff_ffff))) }
    guard code != 0, let text = ERR_reason_error_string(code) else { return "the file cannot be used" }
    return String(cString: text)
  }
}

/// The TLS context for new connections. It can be replaced. Older connections keep the context that they started
/// with.
final class TLSCredentials: Sendable {
  /// The files, or `nil` if the context has the key of a cluster instead.
  private let configuration: TLSConfiguration?
  private let context: Mutex<TLSContext>

  /// Whether the connections are those of other nodes.
  var isOfPeers: Bool { configuration == nil }

  /// Creates the credentials of a server for the other nodes.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if memory is exhausted.
  init(_ key: NodeKey) throws(TransportError) {
    configuration = nil
    context = Mutex(try TLSContext(key, isClient: false))
  }

  init(_ configuration: TLSConfiguration) throws(TransportError) {
    self.configuration = configuration
    context = Mutex(try TLSContext(configuration))
  }

  var current: TLSContext { context.withLock { $0 } }

  /// Reads the files again. If they cannot be used, keeps the old context.
  /// - Throws: ``TransportError/badCertificate(file:reason:)`` if the files cannot be used.
  func reload() throws(TransportError) {
    guard let configuration else { return }
    let renewed = try TLSContext(configuration)
    context.withLock { $0 = renewed }
  }
}
