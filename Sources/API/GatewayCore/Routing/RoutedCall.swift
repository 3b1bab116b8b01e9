package import DatabaseService
package import Transport

/// A request that was matched with a route and whose caller was authenticated: the parts that a handler needs besides the
/// request itself. Only the gateway's routing makes one.
package struct RoutedCall: Sendable {
  /// The identity on whose behalf the request is made. Unauthenticated if the route exists for everyone.
  package let caller: Caller
  package let responder: Responder
  private let match: RouteMatch

  init(_ caller: Caller, _ match: RouteMatch, _ responder: Responder) {
    self.caller = caller
    self.match = match
    self.responder = responder
  }

  /// Returns the bytes of a captured part of the path, undecoded. Parts are numbered from 0 in the order of the path.
  package func part(_ index: Int, of request: borrowing HTTPRequest) -> UnsafeRawBufferPointer {
    let part = match[index]
    return UnsafeRawBufferPointer(rebasing: request.target[Int(part.start)..<Int(part.start + part.count)])
  }

  /// Returns a captured part of the path, decoded.
  ///
  /// - Throws: `INVALID_ARGUMENT` if its percent-encoding is malformed or the result is not UTF-8.
  package func text(_ index: Int, of request: borrowing HTTPRequest) throws(Status) -> String {
    try Self.decoded(part(index, of: request))
  }

  /// Decodes a part of a path.
  ///
  /// - Throws: `INVALID_ARGUMENT` if its percent-encoding is malformed or the result is not UTF-8.
  package static func decoded(_ part: UnsafeRawBufferPointer) throws(Status) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(part.count)
    guard PercentEncoding.decode(part, into: &bytes), PercentEncoding.isUTF8(bytes) else {
      throw Status(.invalidArgument, "Malformed percent-encoding in the path of the URL.")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
