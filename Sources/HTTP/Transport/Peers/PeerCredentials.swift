import COpenSSL
import Glibc

/// The settings of TLS between nodes: only TLS 1.3, and only with the key of the cluster as an external pre-shared key
/// (RFC 8446, section 4.2.11), together with an exchange of keys, so that recorded traffic stays secret if the key leaks.
/// There are no certificates: a side without the key cannot complete the handshake.
enum PeerCredentials {
  /// The protocol's name in the wire format of ALPN.
  private static let offered: StaticString = "\u{d}hearth-peer/1"
  /// The protocol's name.
  static let name: StaticString = "hearth-peer/1"
  /// The name of the key in the handshake, which is not a secret.
  private static let identity: StaticString = "hearth-cluster-key/1"
  private static let cipher: StaticString = "TLS_AES_128_GCM_SHA256"
  private static let cipherNumber: [UInt8] = [0x13, 0x01]

  /// Sets up a context with the key at `secret`, which has ``NodeKey/byteCount`` bytes and lives as long as the
  /// context. Returns `false` if OpenSSL refuses.
  static func prepare(_ raw: OpaquePointer, secret: UnsafeMutableRawPointer, isClient: Bool) -> Bool {
    guard copenssl_harden(raw) == 1, copenssl_only_tls13(raw) == 1,
      name(cipher, { SSL_CTX_set_ciphersuites(raw, $0) }) == 1, SSL_CTX_set_num_tickets(raw, 0) == 1,
      SSL_CTX_set_ex_data(raw, 0, secret) == 1
    else { return false }
    if isClient {
      // A server that does not know the key would have to present a certificate, and none is trusted.
      SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nil)
      SSL_CTX_set_psk_use_session_callback(raw) { ssl, _, id, idCount, session in
        guard let id, let idCount, let session, let made = PeerCredentials.session(ssl) else { return 0 }
        id.pointee = PeerCredentials.identity.utf8Start
        idCount.pointee = PeerCredentials.identity.utf8CodeUnitCount
        session.pointee = made
        return 1
      }
      // Returns 0 on success, unlike other functions.
      return SSL_CTX_set_alpn_protos(raw, offered.utf8Start, UInt32(offered.utf8CodeUnitCount)) == 0
    }
    SSL_CTX_set_psk_find_session_callback(raw) { ssl, id, idCount, session in
      guard let session else { return 0 }
      let isKnown = UnsafeRawBufferPointer(start: id, count: idCount).matches(PeerCredentials.identity)
      session.pointee = isKnown ? PeerCredentials.session(ssl) : nil
      return isKnown && session.pointee == nil ? 0 : 1
    }
    SSL_CTX_set_alpn_select_cb(
      raw,
      { _, chosen, count, offers, offersCount, _ in
        guard let chosen, let offers else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        var found: UnsafeMutablePointer<UInt8>?
        let outcome = SSL_select_next_proto(
          &found, count, PeerCredentials.offered.utf8Start, UInt32(PeerCredentials.offered.utf8CodeUnitCount), offers,
          offersCount)
        chosen.pointee = UnsafePointer(found)
        return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
      }, nil)
    return true
  }

  /// Returns a session with the key of the connection's context; the caller owns it.
  private static func session(_ ssl: OpaquePointer?) -> OpaquePointer? {
    guard let ssl, let context = SSL_get_SSL_CTX(ssl), let secret = SSL_CTX_get_ex_data(context, 0),
      let cipher = SSL_CIPHER_find(ssl, cipherNumber), let session = SSL_SESSION_new()
    else { return nil }
    let key = secret.assumingMemoryBound(to: UInt8.self)
    guard SSL_SESSION_set1_master_key(session, key, NodeKey.byteCount) == 1,
      SSL_SESSION_set_cipher(session, cipher) == 1, SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1
    else {
      SSL_SESSION_free(session)
      return nil
    }
    return session
  }

  private static func name(_ text: StaticString, _ use: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    text.utf8Start.withMemoryRebound(to: CChar.self, capacity: text.utf8CodeUnitCount + 1) { use($0) }
  }
}
