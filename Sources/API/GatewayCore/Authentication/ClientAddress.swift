import Glibc
package import Transport

extension HTTPRequest {
  /// The client's address, or `nil` for this machine. If a trusted proxy sent the request, it is the address that the
  /// proxy forwards. If a proxy on this machine forwards an empty one, it is `unknown`.
  package var clientAddress: String? {
    guard isFromProxy, let forwarded = forwardedAddress else { return isPeerLocal ? nil : remoteAddress }
    let text = String(decoding: forwarded.filter { (0x21...0x7E).contains($0) }.prefix(64), as: UTF8.self)
    return text.isEmpty ? "unknown" : text
  }

  private var isPeerLocal: Bool {
    let peer = remoteAddress
    return peer.hasPrefix("127.") || peer == "::1" || peer.hasPrefix("::ffff:127.")
  }

  /// The address that the last proxy has added: the last one in `X-Forwarded-For` or, without that header, in
  /// `Forwarded` (RFC 7239). The client may have sent the others. `nil` if neither exists. Trust it only if
  /// ``isFromProxy``.
  var forwardedAddress: UnsafeRawBufferPointer? {
    guard let header = lastHeader("x-forwarded-for") else { return forwarded("for") }
    return Self.withoutPort(Self.lastElement(of: header))
  }

  /// The host that the client named: the one that a trusted proxy forwards in `X-Forwarded-Host` or `Forwarded`, or
  /// otherwise that of the header `Host`.
  package var publicHost: String? {
    let named = isFromProxy ? lastHeader("x-forwarded-host") ?? forwarded("host") : nil
    let last = named.flatMap { $0.split(separator: UInt8(ascii: ",")).last }.map(Self.trimmed)
    return (last ?? header("host")).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Whether the client connected to the last proxy by TLS, according to the last element of `X-Forwarded-Proto` or
  /// `Forwarded`. The client may have sent the others. Trust it only if ``isFromProxy``.
  package var isForwardedTLS: Bool {
    let proto = lastHeader("x-forwarded-proto").map(Self.lastElement) ?? (isFromProxy ? forwarded("proto") : nil)
    return proto?.elementsEqual("https".utf8) ?? false
  }

  /// The value of a parameter in the last element of the header `Forwarded`, without quotes. An address has no brackets
  /// and no port. Cost: no allocation.
  private func forwarded(_ name: StaticString) -> UnsafeRawBufferPointer? {
    guard let header = lastHeader("forwarded") else { return nil }
    var rest = Self.lastElement(of: header)[...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: ";")) ?? rest.endIndex
      let pair = rest[..<end]
      rest = rest[end...].dropFirst()
      guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let key = Self.trimmed(pair[..<equals])
      guard key.count == name.utf8CodeUnitCount,
        zip(key, UnsafeBufferPointer(start: name.utf8Start, count: key.count)).allSatisfy({ $0 | 0x20 == $1 })
      else { continue }
      var value = Self.trimmed(pair[equals...].dropFirst())
      if value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") {
        value = UnsafeRawBufferPointer(rebasing: value[1..<value.count - 1])
      }
      return name.utf8Start[0] == UInt8(ascii: "f") ? Self.withoutPort(value) : value
    }
    return nil
  }

  /// Returns an address without the brackets of IPv6 and without a port, which some proxies add.
  private static func withoutPort(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    if value.first == UInt8(ascii: "[") {
      return UnsafeRawBufferPointer(rebasing: value.dropFirst().prefix { $0 != UInt8(ascii: "]") })
    }
    // An IPv6 address without brackets has several colons and no port.
    guard let colon = value.firstIndex(of: UInt8(ascii: ":")), value.lastIndex(of: UInt8(ascii: ":")) == colon else {
      return value
    }
    return UnsafeRawBufferPointer(rebasing: value[..<colon])
  }

  /// Returns the last element of a list with commas, without blanks around it. Cost: no allocation.
  private static func lastElement(of header: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    trimmed(header[((header.lastIndex(of: UInt8(ascii: ",")) ?? -1) + 1)...])
  }

  private static func trimmed(_ text: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer {
    var text = text
    while let first = text.first, first == 0x20 || first == 0x09 { text.removeFirst() }
    while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
    return UnsafeRawBufferPointer(rebasing: text)
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
