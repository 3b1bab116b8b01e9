/// A copy of a complete request and its exchange, for a handler that must wait before it can handle the request. Belongs to
/// the loop of the exchange.
package final class HeldRequest {
  /// The parts of a request, with bytes of their own.
  struct Copy {
    let version: HTTPVersion
    let method: HTTPMethod
    /// The fields, the target, the body, and the padding after it.
    let bytes: [UInt8]
    let target: Range<Int>
    let body: Range<Int>
    let fields: [HeaderField]
    let socket: Int32
    let isFromAdminSocket: Bool
    let isFromProxy: Bool
    let client: RelayedClient?
  }

  /// The exchange of the request.
  package let exchange: Exchange
  private let copy: Copy
  private var isReserved = true

  /// Copies a request. Takes the bytes from the budget of the loop until ``handle(by:)``.
  ///
  /// - Returns: `nil` if the budget is exhausted. Handle the request at once then, or refuse it.
  package init?(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let copy = request.copied()
    guard exchange.reserve(copy.bytes.count) else { return nil }
    self.copy = copy
    self.exchange = exchange
  }

  deinit { release() }

  private func release() {
    guard isReserved else { return }
    isReserved = false
    exchange.release(copy.bytes.count)
  }

  /// Has a handler handle the request, unless the client has disconnected. Call it once, on the loop.
  package func handle(by handler: any RequestHandler) {
    release()
    // The socket of a client that has left may belong to another one.
    guard exchange.isAwaitingResponse else { return }
    exchange.chosen = handler
    copy.bytes.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      copy.fields.withUnsafeBufferPointer { fields in
        let request = HTTPRequest(
          version: copy.version, method: copy.method, target: UnsafeRawBufferPointer(rebasing: bytes[copy.target]),
          body: UnsafeRawBufferPointer(rebasing: bytes[copy.body]), message: start, fields: fields,
          socket: copy.socket, isFromAdminSocket: copy.isFromAdminSocket, isFromProxy: copy.isFromProxy,
          client: copy.client)
        handler.handle(request, exchange)
      }
    }
  }
}
