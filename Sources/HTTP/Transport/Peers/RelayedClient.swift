import Basics
import Glibc

/// The statement of a node about a client, with a request of that client for another node. It is honored only on
/// connections whose handshake proved the cluster's key.
///
/// The statement is the *envelope*: the first field of the request's head, `hearth-envelope`, has the format, the
/// client's HTTP version, flags, the client's address and the id of the request, separated by blanks. The flags say
/// which fields follow it: `h` one with the client's host, `t` one with its target, if that is not a path. All fields
/// after these are the client's own. So a client's field has no effect, whatever its name. The flag `n` says that the
/// request has no client: the node makes it itself (``NodeClient``). The flag `o` permits the receiver to pass the request on to
/// the owner; it removes the flag. A second format says that the client sent the request to the address of the console.
final class RelayedClient: Sendable {
  static let fieldName: StaticString = "hearth-envelope"
  static let hostName: StaticString = "hearth-host"
  static let targetName: StaticString = "hearth-target"
  /// The bytes of an id.
  static let idBytes = 16

  /// The numeric address as text, or an empty text if it is unknown.
  let address: String
  /// The 4 or 16 bytes of the address, or none.
  let addressBytes: [UInt8]
  let version: HTTPVersion
  let isFromAdminSocket: Bool
  let isFromProxy: Bool
  let hasHost: Bool
  let hasTarget: Bool
  /// Whether the node itself makes the request.
  let isNode: Bool
  /// Whether the receiver may pass the request on to the owner.
  let mayPassOn: Bool
  /// Whether the client sent the request to the address of the console.
  let isForConsole: Bool
  /// The id that all tries of a request share, or `nil` for a request that may be repeated anyway.
  let requestID: [UInt8]?

  /// The format, so that a later one is not misread. A node of a version without consoles in clusters refuses the second one,
  /// which it would take for a request to the address of the apps.
  private static let format: StaticString = "1"
  private static let consoleFormat: StaticString = "2"

  /// Describes the client of a request.
  init(of request: borrowing HTTPRequest, isForConsole: Bool = false, requestID: [UInt8]?) {
    address = request.remoteAddress
    addressBytes = request.withPeerAddress { Array($0) }
    version = request.version
    isFromAdminSocket = request.isFromAdminSocket
    isFromProxy = request.isFromProxy
    hasHost = request.header("host") != nil
    hasTarget = request.target.first != UInt8(ascii: "/")
    isNode = false
    mayPassOn = false
    self.isForConsole = isForConsole
    self.requestID = requestID
  }

  /// Describes a request that a node makes itself.
  init() {
    address = ""
    addressBytes = []
    version = .http2
    isFromAdminSocket = false
    isFromProxy = false
    hasHost = false
    hasTarget = false
    isNode = true
    mayPassOn = false
    isForConsole = false
    requestID = nil
  }

  /// Reads an envelope. Returns `nil` if it is malformed.
  init?(_ envelope: UnsafeRawBufferPointer) {
    let parts = envelope.split(separator: 0x20, omittingEmptySubsequences: false)
    guard parts.count == 5 else { return nil }
    let format = UnsafeRawBufferPointer(rebasing: parts[0])
    isForConsole = format.matches(Self.consoleFormat)
    guard isForConsole || format.matches(Self.format),
      let version = HTTPVersion(relayed: UnsafeRawBufferPointer(rebasing: parts[1]))
    else { return nil }
    self.version = version
    let flags = parts[2]
    isFromAdminSocket = flags.contains(UInt8(ascii: "a"))
    isFromProxy = flags.contains(UInt8(ascii: "p"))
    hasHost = flags.contains(UInt8(ascii: "h"))
    hasTarget = flags.contains(UInt8(ascii: "t"))
    isNode = flags.contains(UInt8(ascii: "n"))
    mayPassOn = flags.contains(UInt8(ascii: "o"))
    address = parts[3].elementsEqual("-".utf8) ? "" : String(decoding: parts[3], as: UTF8.self)
    addressBytes = Self.bytes(of: address)
    if parts[4].elementsEqual("-".utf8) {
      requestID = nil
    } else {
      guard parts[4].count == 2 * Self.idBytes, let id = Self.id(parts[4]) else { return nil }
      requestID = id
    }
  }

  /// The envelope. With `mayPassOn`, the receiver may pass the request on to the owner.
  func text(mayPassOn: Bool = false) -> [UInt8] {
    var flags = ""
    if isFromAdminSocket { flags += "a" }
    if isFromProxy { flags += "p" }
    if hasHost { flags += "h" }
    if hasTarget { flags += "t" }
    if isNode { flags += "n" }
    if mayPassOn { flags += "o" }
    let format = isForConsole ? Self.consoleFormat : Self.format
    let head = "\(format) \(version.relayed) \(flags.isEmpty ? "-" : flags) \(address.isEmpty ? "-" : address) "
    var text = Array(head.utf8)
    guard let requestID else { return text + [UInt8(ascii: "-")] }
    for byte in requestID { text += [Self.digits[Int(byte >> 4)], Self.digits[Int(byte & 15)]] }
    return text
  }

  private static let digits = Array("0123456789abcdef".utf8)

  private static func id(_ text: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
    var id: [UInt8] = []
    var high: UInt8?
    for digit in text {
      guard let value = digits.firstIndex(of: digit) else { return nil }
      if let first = high {
        id.append(first << 4 | UInt8(value))
        high = nil
      } else {
        high = UInt8(value)
      }
    }
    return id
  }

  private static func bytes(of address: String) -> [UInt8] {
    var four = in_addr()
    if inet_pton(AF_INET, address, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
    var six = in6_addr()
    // The zone of a link-local address is not a part of its bytes.
    let bare = address.split(separator: "%", maxSplits: 1).first.map(String.init) ?? ""
    return inet_pton(AF_INET6, bare, &six) == 1 ? withUnsafeBytes(of: six) { Array($0) } : []
  }
}

extension HTTPVersion {
  fileprivate init?(relayed text: UnsafeRawBufferPointer) {
    if text.matches("2") {
      self = .http2
    } else if text.matches("1.1") {
      self = .http11
    } else if text.matches("1.0") {
      self = .http10
    } else {
      return nil
    }
  }

  fileprivate var relayed: String {
    switch self {
    case .http10: "1.0"
    case .http11: "1.1"
    case .http2: "2"
    }
  }
}

extension HTTP2RequestHead {
  /// Takes the envelope out of the head of a relayed request. Refuses a request without one.
  mutating func openEnvelope() {
    guard refusal == nil else { return }
    if !takeEnvelope() { refuse(.malformed) }
  }

  private mutating func takeEnvelope() -> Bool {
    // The first field is the `host` that the authority of the connection became.
    guard fields.count >= 2, isNamed(fields[0], "host"), isNamed(fields[1], RelayedClient.fieldName),
      let client = bytes.withUnsafeBytes({ RelayedClient(UnsafeRawBufferPointer(rebasing: $0[value(of: fields[1])])) })
    else { return false }
    let host = fields[0]
    var taken = 2
    var named: HeaderField?
    if client.hasHost {
      guard fields.count > taken, isNamed(fields[taken], RelayedClient.hostName) else { return false }
      var field = fields[taken]
      field.nameStart = host.nameStart
      field.nameCount = host.nameCount
      named = field
      taken += 1
    }
    var newTarget: Range<Int>?
    if client.hasTarget {
      guard fields.count > taken, isNamed(fields[taken], RelayedClient.targetName) else { return false }
      let target = value(of: fields[taken])
      guard !target.isEmpty else { return false }
      newTarget = target
      taken += 1
    }
    take(client, fieldCount: taken, host: named, target: newTarget)
    return true
  }

  private func isNamed(_ field: HeaderField, _ name: StaticString) -> Bool {
    let start = Int(field.nameStart)
    return bytes.withUnsafeBytes {
      UnsafeRawBufferPointer(rebasing: $0[start..<start + Int(field.nameCount)]).matches(name)
    }
  }

  private func value(of field: HeaderField) -> Range<Int> {
    let start = Int(field.valueStart)
    return start..<start + Int(field.valueCount)
  }
}
