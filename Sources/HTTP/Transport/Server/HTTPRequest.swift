import Glibc

/// The method of a request. All methods that the server does not use are `other`.
package enum HTTPMethod: Sendable {
  case get, head, post, put, patch, delete, options, other
}

/// The HTTP version of a request.
package enum HTTPVersion: Sendable {
  case http10, http11, http2
}

/// The position of one header field, as byte offsets from the start of the message.
struct HeaderField {
  var nameStart: UInt32
  var nameCount: UInt32
  var valueStart: UInt32
  var valueCount: UInt32
}

/// A request. All its bytes are borrowed from the connection, and valid only during the call that receives the
/// request.
package struct HTTPRequest: ~Copyable {
  package let version: HTTPVersion
  package let method: HTTPMethod
  /// The raw request target: path and query, undecoded. Never empty.
  package let target: UnsafeRawBufferPointer
  /// The body, with chunked and gzip coding removed. Empty in `RequestHandler.openBody`. At least
  /// `InputBuffer.paddingBytes` (64) readable bytes follow it.
  package let body: UnsafeRawBufferPointer

  private let message: UnsafeRawPointer
  private let fields: UnsafeBufferPointer<HeaderField>
  private let socket: Int32
  /// The client that sent the request to another node, which relayed it. Only connections of nodes have one.
  private let client: RelayedClient?
  /// Whether the request came over the admin socket of the data directory, which only the owner of the server's process
  /// and root can open. The transport sets this; no part of a request can.
  package let isFromAdminSocket: Bool
  /// Whether a proxy whose headers about the client are trusted may have sent the request: one on this machine, or one
  /// that the operator has named.
  package let isFromProxy: Bool

  init(
    version: HTTPVersion, method: HTTPMethod, target: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer,
    message: UnsafeRawPointer,
    fields: UnsafeBufferPointer<HeaderField>, socket: Int32, isFromAdminSocket: Bool = false,
    isFromProxy: Bool = true, client: RelayedClient? = nil
  ) {
    self.version = version
    self.method = method
    self.target = target
    self.body = body
    self.message = message
    self.fields = fields
    self.socket = socket
    self.isFromAdminSocket = isFromAdminSocket
    self.isFromProxy = isFromProxy
    self.client = client
  }

  /// Whether another node of the cluster relayed the request. Such a request must not be relayed again, unless ``mayPassOn``.
  package var isRelayed: Bool { client != nil }

  /// Whether another node relayed the request that does not reach the owner, so that this one may pass it on.
  package var mayPassOn: Bool { client?.mayPassOn ?? false }

  /// Whether another node of the cluster makes the request itself, for no client. Only a connection whose handshake proved
  /// the cluster's key can have one; no part of a client's request can say so.
  package var isFromNode: Bool { client?.isNode ?? false }

  /// Whether another node received the request at the address of its console. No part of a client's request can say so.
  package var isForConsole: Bool { client?.isForConsole ?? false }

  /// The 16 bytes that all tries of a relayed request share, so that it can be recognized, or `nil` if the request is not
  /// relayed, or has a safe method.
  package var relayedRequestID: [UInt8]? { client?.requestID }

  /// Returns the value of the first field with this name, without surrounding blanks, or `nil` if it is missing.
  /// Searches the fields in order.
  ///
  /// - Parameter lowercasedName: the name in lower case. The client may have used any case.
  package func header(_ lowercasedName: StaticString) -> UnsafeRawBufferPointer? {
    for field in fields where Int(field.nameCount) == lowercasedName.utf8CodeUnitCount {
      if equalIgnoringCase(message + Int(field.nameStart), lowercasedName) { return value(of: field) }
    }
    return nil
  }

  /// The value of the last header field with a name, given in lower case; `nil` if no field has it.
  package func lastHeader(_ lowercasedName: StaticString) -> UnsafeRawBufferPointer? {
    for field in fields.reversed() where Int(field.nameCount) == lowercasedName.utf8CodeUnitCount {
      if equalIgnoringCase(message + Int(field.nameStart), lowercasedName) { return value(of: field) }
    }
    return nil
  }

  /// The number of header fields.
  package var headerCount: Int { fields.count }

  /// Returns the field at `index`, in the order sent, with its name as the client wrote it.
  package func header(at index: Int) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let field = fields[index]
    let name = UnsafeRawBufferPointer(start: message + Int(field.nameStart), count: Int(field.nameCount))
    return (name, value(of: field))
  }

  /// The client's numeric address, or an empty string if it is unknown. A relayed request has that of the client of the
  /// other node. For a request from this process or from the admin socket, the loopback address. Costs a system call.
  package var remoteAddress: String {
    if let client { return client.address }
    return socket < 0 || isFromAdminSocket ? "127.0.0.1" : SocketAddress.peer(of: socket)?.host ?? ""
  }

  /// Calls `body` with the 4 or 16 bytes of the numeric address of the other end of the connection, or of the client of a
  /// relayed request, or with no bytes if it has none. Cost: one system call, no allocation.
  package func withPeerAddress<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if let client { return client.addressBytes.withUnsafeBytes(body) }
    return PeerAddress.with(socket, body)
  }

  /// Copies the request, so that it can be handled after the call that receives it.
  func copied() -> HeldRequest.Copy {
    var end = 0
    for field in fields {
      end = max(end, Int(field.nameStart + field.nameCount), Int(field.valueStart + field.valueCount))
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(end + target.count + body.count + InputBuffer.paddingBytes)
    bytes.append(raw: UnsafeRawBufferPointer(start: message, count: end))
    bytes.append(raw: target)
    bytes.append(raw: body)
    let bodyEnd = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: InputBuffer.paddingBytes))
    return HeldRequest.Copy(
      version: version, method: method, bytes: bytes, target: end..<(end + target.count),
      body: (end + target.count)..<bodyEnd, fields: Array(fields), socket: socket,
      isFromAdminSocket: isFromAdminSocket, isFromProxy: isFromProxy, client: client)
  }

  private func value(of field: HeaderField) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: message + Int(field.valueStart), count: Int(field.valueCount))
  }
}

/// Whether the bytes equal the lower-case name, ignoring the case of ASCII letters. Reads as many bytes as the name
/// has.
@inline(__always)
func equalIgnoringCase(_ bytes: UnsafeRawPointer, _ lowercasedName: StaticString) -> Bool {
  let name = lowercasedName.utf8Start
  for index in 0..<lowercasedName.utf8CodeUnitCount {
    var byte = bytes.load(fromByteOffset: index, as: UInt8.self)
    if byte &- 0x41 < 26 { byte |= 0x20 }
    if byte != name[index] { return false }
  }
  return true
}
