/// The header fields that nodes add or leave out when they relay an exchange.
enum RelayedFields {
  /// The field of a response of a node that does not own the project. Only responses of peers are searched for it.
  static let notOwner: StaticString = "hearth-not-owner"
  /// The field of a response that the node which faces the client may compress.
  static let compressible: StaticString = "hearth-compressible"
  /// The bytes up to which a peer leaves the compression of a response to the node that faces the client.
  static let compressibleBytesMax = 1024 * 1024

  /// Whether a field describes a connection and not the message (RFC 9110, section 7.6.1). HTTP/2 forbids these.
  static func isOfConnection(_ name: UnsafeRawBufferPointer) -> Bool {
    switch name.count {
    case 2: name.equals("te")
    case 6: name.equals("expect")
    case 7: name.equals("upgrade")
    case 10: name.equals("connection") || name.equals("keep-alive")
    case 14: name.equals("http2-settings")
    case 16: name.equals("proxy-connection")
    case 17: name.equals("transfer-encoding")
    default: false
    }
  }

  /// Whether a comma-separated list, as in `Connection`, names a field.
  static func list(_ list: UnsafeRawBufferPointer, names name: UnsafeRawBufferPointer) -> Bool {
    list.split(separator: UInt8(ascii: ",")).contains { element in
      let text = element.drop { $0 == 0x20 || $0 == 0x09 }.reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed()
      return text.count == name.count && zip(text, name).allSatisfy { lowered($0) == lowered($1) }
    }
  }

  /// The number that a field has, or `nil` if it is not one.
  static func number(_ value: UnsafeRawBufferPointer) -> Int? {
    let digits = value.drop { $0 == 0x20 }
    guard !digits.isEmpty, digits.count <= 18 else { return nil }
    var number = 0
    for digit in digits {
      guard digit &- 0x30 < 10 else { return nil }
      number = number * 10 + Int(digit &- 0x30)
    }
    return number
  }

  /// Whether the head of a gRPC response has a status with which a server refuses a request before it looks at it:
  /// RESOURCE_EXHAUSTED, UNAVAILABLE or UNAUTHENTICATED. An error without a message has its status in the head.
  static func saysNothingOfEarlierTry(_ lines: [UInt8]) -> Bool {
    lines.split(separator: UInt8(ascii: "\n")).contains { line in
      let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
      guard parts.count == 2, parts[0].elementsEqual("grpc-status".utf8) else { return false }
      let value = parts[1].filter { $0 > 0x20 }
      return ["8", "14", "16"].contains { value.elementsEqual($0.utf8) }
    }
  }

  static func lowered(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}

extension UnsafeRawBufferPointer {
  /// Whether these are the bytes of a name in lower case, in any case.
  fileprivate func equals(_ lowercasedName: StaticString) -> Bool {
    guard count == lowercasedName.utf8CodeUnitCount, let start = baseAddress else { return false }
    return equalIgnoringCase(start, lowercasedName)
  }
}

extension Exchange {
  /// Responds to a relayed request that this node does not own the project of, so that the other node asks the owner. Of
  /// no effect for clients, which see the status 503.
  package func refuseAsNotOwner() {
    guard isAwaitingResponse else { return }
    respond(
      status: 503, headers: { $0.add(RelayedFields.notOwner, "1") }, compressible: false, body: { _ in })
  }
}
