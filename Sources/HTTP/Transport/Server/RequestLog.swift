/// Which requests are told, and to whom.
package struct RequestLog: Sendable {
  /// One request of so many is told, on each loop; 1 is all.
  package var interval: Int
  /// Called on the loop with each of them; must not wait for anything.
  package var write: @Sendable (RequestRecord) -> Void

  /// Tells one request of `interval`, at least 1.
  package init(interval: Int, write: @escaping @Sendable (RequestRecord) -> Void) {
    self.interval = max(1, interval)
    self.write = write
  }
}

/// What is told of a request that failed for a fault of the server's.
package struct FailedRequest: Sendable {
  /// Its method.
  package var method: HTTPMethod
  /// The path as the client spelt it, without query and fragment, cut at 256 bytes. Any bytes.
  package var path: [UInt8]
  /// The HTTP status that stands for the failure, also where the reply's own is another, as gRPC's is.
  package var status: Int
  /// What went wrong, for who runs the server.
  package var message: String
}

/// What is told of a request: nothing of its fields, query or body, where secrets and documents are.
package struct RequestRecord: Sendable {
  /// Bytes of a path that are kept.
  static let pathBytesMax = 256

  /// The path of a target: what stands before a query or a fragment, which may hold secrets.
  static func path(_ target: some Sequence<UInt8>) -> [UInt8] {
    Array(target.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }.prefix(pathBytesMax))
  }

  /// What the handler said it is, by `Exchange.kind`.
  package var kind: Int
  /// Its method.
  package var method: HTTPMethod
  /// The path as the client spelt it, without query and fragment, cut at 256 bytes. Any bytes.
  package var path: [UInt8]
  /// The status of the reply; 0 where the client left first.
  package var status: Int
  /// The time until the reply was made, or, where it is streamed, begun.
  package var microseconds: Int
  /// The numeric address of the client.
  package var client: String
}
