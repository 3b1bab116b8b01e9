import Glibc
package import Transport

extension HTTPRequest {
  /// The client's address, or `nil` for this machine. If the peer is a proxy on this machine, it is the address
  /// that the proxy forwards, or `unknown` if it forwards none.
  package var clientAddress: String? {
    let peer = remoteAddress
    guard peer.hasPrefix("127.") || peer == "::1" || peer.hasPrefix("::ffff:127.") else { return peer }
    guard let header = lastHeader("x-forwarded-for") else { return nil }
    // The proxy adds the last address itself, to the client's header or as another one. The client may have sent the
    // others.
    let last = header.split(separator: UInt8(ascii: ",")).last ?? header[0..<0]
    let text = String(decoding: last.filter { (0x21...0x7E).contains($0) }.prefix(64), as: UTF8.self)
    return text.isEmpty ? "unknown" : text
  }

  /// The client's address, or for IPv6 its /64 network, because each client can use all addresses of its network.
  /// Empty for this machine.
  package var clientNetwork: String { clientAddress.map(ClientNetwork.text) ?? "" }
}

/// The part of an address that a client cannot choose freely.
package enum ClientNetwork {
  /// Returns `2001:db8:1:2::/64` for an IPv6 address in that network, and any other text unchanged.
  package static func text(_ address: String) -> String {
    var bytes = in6_addr()
    // A zone index has a meaning only on this machine.
    guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &bytes) == 1 else { return address }
    return withUnsafeBytes(of: &bytes) { bytes in
      // An IPv6 address that represents an IPv4 address belongs to one client.
      if bytes[..<10].allSatisfy({ $0 == 0 }) { return address }
      let words = (0..<4).map { String(UInt16(bytes[2 * $0]) << 8 | UInt16(bytes[2 * $0 + 1]), radix: 16) }
      return words.joined(separator: ":") + "::/64"
    }
  }
}
