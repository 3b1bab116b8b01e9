import Glibc
import Transport

extension HTTPRequest {
  /// Where the request comes from; `nil` for this machine. A proxy on this machine says for whom it asks.
  var clientAddress: String? {
    let peer = remoteAddress
    guard peer.hasPrefix("127.") || peer == "::1" || peer.hasPrefix("::ffff:127.") else { return peer }
    guard let header = header("x-forwarded-for") else { return nil }
    // The last one is the proxy's own word; those before are the client's.
    let last = header.split(separator: UInt8(ascii: ",")).last ?? header[0..<0]
    let text = String(decoding: last.filter { (0x21...0x7E).contains($0) }.prefix(64), as: UTF8.self)
    return text.isEmpty ? nil : text
  }

  /// Where the request comes from, as far as it tells clients apart: of an address of IPv6 the half that names a
  /// network, as each client has all of that. Empty for this machine.
  var clientNetwork: String { clientAddress.map(ClientNetwork.text) ?? "" }
}

/// The part of an address that a client cannot choose.
enum ClientNetwork {
  /// `2001:db8:1:2::/64` for an address of IPv6 within it; any other text as it is.
  static func text(_ address: String) -> String {
    var bytes = in6_addr()
    // A zone is this machine's own word.
    guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &bytes) == 1 else { return address }
    return withUnsafeBytes(of: &bytes) { bytes in
      // One that stands for an address of IPv4 is that client's own.
      if bytes[..<10].allSatisfy({ $0 == 0 }) { return address }
      let words = (0..<4).map { String(UInt16(bytes[2 * $0]) << 8 | UInt16(bytes[2 * $0 + 1]), radix: 16) }
      return words.joined(separator: ":") + "::/64"
    }
  }
}
