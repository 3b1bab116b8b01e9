import COpenSSL
import Glibc

/// TLS on one connection, independent of its socket: converts encrypted bytes to plain ones, and plain bytes to
/// encrypted ones. OpenSSL reads directly from the received bytes and writes directly into the output, so an idle
/// connection holds no buffers.
final class TLSChannel {
  /// The outcome of a read.
  enum Opened {
    case bytes(Int)
    /// All received bytes were used.
    case wantsMore
    /// The client has announced that it will send no more.
    case ended
    /// The input is not TLS or was tampered with, or the two sides have no protocol or cipher in common.
    case failed
  }

  /// The most records with handshake messages on one connection. A handshake needs about five. Later ones renew keys
  /// or ask to renegotiate, which clients do rarely or never, and each costs computations.
  private static let handshakeRecordsMax = 64
  /// The memory of a larger response is not kept for reuse.
  private static let spareBytesMax = 64 * 1024

  /// Encrypted bytes that OpenSSL produced by itself, such as handshakes and alerts, and that were not sent yet.
  private(set) var unsent: [UInt8] = []
  private(set) var isEstablished = false
  private let ssl: OpaquePointer
  private let handshakeRecords: UnsafeMutablePointer<Int32>
  private var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  private var isFailed = false
  private var saidEnd = false

  /// - Returns: `nil` if memory is exhausted.
  init?(_ context: TLSContext, isClient: Bool = false) {
    guard let method = Self.method, let ssl = SSL_new(context.raw) else { return nil }
    self.ssl = ssl
    handshakeRecords = .allocate(capacity: 1)
    handshakeRecords.initialize(to: 0)
    guard let bio = BIO_new(method) else { return nil }
    SSL_set_bio(ssl, bio, bio)
    if isClient { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    copenssl_count_handshake_records(ssl, handshakeRecords)
  }

  deinit {
    SSL_free(ssl)
    handshakeRecords.deallocate()
  }

  /// Whether the client chose HTTP/2, or `nil` if it chose no protocol.
  var choseHTTP2: Bool? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    return name == nil ? nil : UnsafeRawBufferPointer(start: name, count: Int(count)).matches("h2")
  }

  /// Whether the handshake used the key of the cluster, and both sides agreed on the protocol of nodes.
  var isPeer: Bool {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    return SSL_session_reused(ssl) == 1
      && UnsafeRawBufferPointer(start: name, count: Int(count)).matches(PeerCredentials.name)
  }

  /// Makes the encrypted bytes available to the calls of `open` inside `body`.
  func receive(_ sealed: UnsafeRawBufferPointer, _ body: () -> Void) {
    incoming = sealed
    body()
    incoming = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// Decrypts bytes into `space`, which must not be empty. Also advances the handshake.
  func open(into space: UnsafeMutableRawBufferPointer) -> Opened {
    guard !isFailed else { return .failed }
    ERR_clear_error()
    var count = 0
    let outcome = SSL_read_ex(ssl, space.baseAddress, space.count, &count)
    if !isEstablished { isEstablished = SSL_is_init_finished(ssl) == 1 }
    guard handshakeRecords.pointee <= Self.handshakeRecordsMax else {
      isFailed = true
      return .failed
    }
    if outcome == 1 { return .bytes(count) }
    switch SSL_get_error(ssl, outcome) {
    case SSL_ERROR_WANT_READ: return .wantsMore
    case SSL_ERROR_ZERO_RETURN: return .ended
    default:
      isFailed = true
      return .failed
    }
  }

  /// Replaces `bytes` with their encrypted form, preceded by pending handshake bytes and, if `isLast`, followed by
  /// the closing alert. `spare` provides memory and receives the memory of the plain bytes. Returns `false` if the
  /// channel can no longer be used.
  func seal(_ bytes: inout [UInt8], isLast: Bool, spare: inout [UInt8]) -> Bool {
    if unsent.isEmpty { swap(&unsent, &spare) }
    ERR_clear_error()
    var isSealed = true
    if !isFailed && !bytes.isEmpty {
      var count = 0
      isSealed = bytes.withUnsafeBytes { SSL_write_ex(ssl, $0.baseAddress, $0.count, &count) } == 1
    }
    if isLast && !isFailed && isSealed && isEstablished && !saidEnd {
      saidEnd = true
      SSL_shutdown(ssl)
    }
    bytes.removeAll(keepingCapacity: true)
    swap(&bytes, &unsent)
    swap(&unsent, &spare)
    unsent = []
    if spare.capacity > Self.spareBytesMax { spare = [] }
    return isSealed
  }

  // MARK: - OpenSSL's side

  // Written once, before any other thread can read it.
  private nonisolated(unsafe) static let method: OpaquePointer? = {
    guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection") else { return nil }
    BIO_meth_set_create(method) { bio in
      BIO_set_init(bio, 1)
      return 1
    }
    BIO_meth_set_read(method) { bio, space, count in
      guard let bio, let space, count > 0, let channel = TLSChannel.channel(bio) else { return -1 }
      return channel.give(to: UnsafeMutableRawBufferPointer(start: space, count: Int(count)), bio)
    }
    BIO_meth_set_write(method) { bio, bytes, count in
      guard let bio, let bytes, count >= 0, let channel = TLSChannel.channel(bio) else { return -1 }
      copenssl_clear_retry(bio)
      channel.unsent.append(raw: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
      return count
    }
    BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return method
  }()

  private static func channel(_ bio: OpaquePointer) -> TLSChannel? {
    BIO_get_data(bio).map { Unmanaged<TLSChannel>.fromOpaque($0).takeUnretainedValue() }
  }

  private func give(to space: UnsafeMutableRawBufferPointer, _ bio: OpaquePointer) -> Int32 {
    copenssl_clear_retry(bio)
    guard !incoming.isEmpty else {
      copenssl_retry_read_later(bio)
      return -1
    }
    let count = min(space.count, incoming.count)
    space.copyMemory(from: UnsafeRawBufferPointer(rebasing: incoming[..<count]))
    incoming = UnsafeRawBufferPointer(rebasing: incoming[count...])
    return Int32(count)
  }
}
