import Glibc

/// The method of a request. Methods the server has no use for are one case.
package enum HTTPMethod: Sendable {
  case get, head, post, put, patch, delete, options, other
}

/// The version of the protocol that a request came by.
package enum HTTPVersion: Sendable {
  case http10, http11, http2
}

/// Where one header field lies, as byte offsets from the start of the message.
struct HeaderField {
  var nameStart: UInt32
  var nameCount: UInt32
  var valueStart: UInt32
  var valueCount: UInt32
}

/// One request. All bytes are borrowed from the connection and valid only during the call that is given the request.
package struct HTTPRequest: ~Copyable {
  /// The protocol it came by.
  package let version: HTTPVersion
  /// The method.
  package let method: HTTPMethod
  /// The raw request target, path and query, undecoded. Never empty.
  package let target: UnsafeRawBufferPointer
  /// The body, freed of chunked and gzip coding; empty in `RequestHandler.openBody`. At least `InputBuffer.paddingBytes` (64) readable bytes follow it.
  package let body: UnsafeRawBufferPointer

  private let message: UnsafeRawPointer
  private let fields: UnsafeBufferPointer<HeaderField>
  private let socket: Int32

  init(
    version: HTTPVersion, method: HTTPMethod, target: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer, message: UnsafeRawPointer,
    fields: UnsafeBufferPointer<HeaderField>, socket: Int32
  ) {
    self.version = version
    self.method = method
    self.target = target
    self.body = body
    self.message = message
    self.fields = fields
    self.socket = socket
  }

  /// The value of the first field of that name, without surrounding blanks. A scan of the fields.
  ///
  /// - Parameter lowercasedName: must be lower case; the client's may be any.
  package func header(_ lowercasedName: StaticString) -> UnsafeRawBufferPointer? {
    for field in fields where Int(field.nameCount) == lowercasedName.utf8CodeUnitCount {
      if equalIgnoringCase(message + Int(field.nameStart), lowercasedName) { return value(of: field) }
    }
    return nil
  }

  /// How many header fields came.
  package var headerCount: Int { fields.count }

  /// The field at `index` in the order sent, its name as the client spelt it.
  package func header(at index: Int) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let field = fields[index]
    let name = UnsafeRawBufferPointer(start: message + Int(field.nameStart), count: Int(field.nameCount))
    return (name, value(of: field))
  }

  /// The client's numeric address, or an empty string when it cannot be told; this machine's for a request of this
  /// process. Costs a system call.
  package var remoteAddress: String {
    socket < 0 ? "127.0.0.1" : SocketAddress.peer(of: socket)?.host ?? ""
  }

  private func value(of field: HeaderField) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: message + Int(field.valueStart), count: Int(field.valueCount))
  }
}

/// Compares as many bytes as the lower-case name has; only ASCII letters fold.
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
