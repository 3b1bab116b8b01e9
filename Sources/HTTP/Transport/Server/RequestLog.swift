/// The settings of the request log.
package struct RequestLog: Sendable {
  /// Each loop logs one request in this many; 1 logs all.
  package var interval: Int
  /// Called on the loop with each logged request. Must not block.
  package var write: @Sendable (RequestRecord) -> Void

  /// Creates a log of one request in `interval`, at least 1.
  package init(interval: Int, write: @escaping @Sendable (RequestRecord) -> Void) {
    self.interval = max(1, interval)
    self.write = write
  }
}

/// The log record of a request that failed because of an error of the server itself.
package struct FailedRequest: Sendable {
  package var method: HTTPMethod
  /// The path as the client wrote it, without query and fragment, cut at 256 bytes. Can be any bytes.
  package var path: [UInt8]
  /// The HTTP status for this failure, even if the response's own status differs, as in gRPC.
  package var status: Int
  /// The cause, for the operator of the server.
  package var message: String
}

/// The log record of a request. Contains no header fields, query or body, since these hold secrets and documents.
package struct RequestRecord: Sendable {
  /// The most bytes of a path that a record keeps.
  static let pathBytesMax = 256

  /// Returns the path of a target: the part before the query and fragment, which may hold secrets.
  static func path(_ target: some Sequence<UInt8>) -> [UInt8] {
    Array(target.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }.prefix(pathBytesMax))
  }

  /// The kind that the handler set in `Exchange.kind`.
  package var kind: Int
  package var method: HTTPMethod
  /// The path as the client wrote it, without query and fragment, cut at 256 bytes. Can be any bytes.
  package var path: [UInt8]
  /// The status of the response, or 0 if the client disconnected first.
  package var status: Int
  /// The time until the response was complete, or until it began if it is streamed.
  package var microseconds: Int
  /// The client's numeric address.
  package var client: String
}
