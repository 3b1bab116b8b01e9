import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

/// One gRPC call in progress: its response, deadline and compression.
///
/// Use it on the loop of its exchange only. Work on other threads uses ``bound``.
final class GRPCCall {
  let exchange: Exchange
  /// The compression of the response. It is the request's, because the client certainly supports that.
  let compression: GRPCCompression
  let caller: Caller
  /// The ID of a call that may arrive again, or `nil`.
  let requestID: RequestID?
  /// The database of the call, once it is known. Errors name documents in it.
  var database: DatabaseID?

  let head: GRPCRequestHead
  /// Whether the response was sent or started, or can no longer be sent.
  private(set) var hasResponded = false
  private var timer: LoopTimer?
  private var stopStream: ((Status) -> Void)?

  init(_ exchange: Exchange, _ head: GRPCRequestHead, _ caller: Caller, requestID: RequestID? = nil) {
    self.requestID = requestID
    self.exchange = exchange
    self.head = head
    self.caller = caller
    compression = GRPCCompression(exchange: head.isGzip ? exchange : nil)
  }

  /// Creates the call of a request.
  ///
  /// - Throws: the errors of ``GRPCRequestHead/check()``.
  convenience init(_ request: borrowing HTTPRequest, _ routed: RoutedCall) throws {
    self.init(routed.responder.exchange, GRPCRequestHead(request), routed.caller, requestID: request.requestID)
    try head.check()
  }

  /// A reference to the call for other threads.
  var bound: LoopBound<GRPCCall> { LoopBound(self, to: exchange.loop) }

  /// A closure that resumes the response after it waited. It may be called on any thread.
  var wake: @Sendable () -> Void { exchange.wake }

  /// Decompresses a message of the request.
  ///
  /// - Throws: `INTERNAL` if the message is not valid gzip or its compression was not announced,
  ///   `RESOURCE_EXHAUSTED` if it is too large.
  func decompress(_ message: UnsafeRawBufferPointer) throws -> [UInt8] {
    guard head.isGzip else { throw Status(.internal, "The request has a compressed message but no grpc-encoding.") }
    do throws(GzipError) {
      return try exchange.decompress(message, bytesMax: Limits.enterpriseRequestBytesMax)
    } catch {
      switch error {
      case .malformed: throw Status(.internal, "The request's message is not valid gzip.")
      case .tooLarge: throw GRPCHandler.tooLarge(Limits.enterpriseRequestBytesMax)
      }
    }
  }

  // MARK: Response

  /// Responds with the message that `write` appends to the output, or with the error that it throws.
  func send(_ write: (inout [UInt8]) throws -> Void) {
    guard begin() else { return }
    do {
      try exchange.respond(
        status: 200, headers: { addHead(&$0) }, body: { try compression.frame(in: &$0, write) },
        trailers: { GRPCStatus.addOK(to: &$0) })
    } catch {
      // Nothing was sent.
      hasResponded = false
      fail(error)
    }
  }

  /// Responds with a message.
  func send(_ message: some EncodableMessage) {
    send { (out) throws(WireError) in try message.appendProtobuf(to: &out) }
  }

  /// Responds with a message or an error.
  func send<E: Error>(_ result: Result<some EncodableMessage, E>) {
    do { send(try result.get()) } catch { fail(error) }
  }

  /// Responds with the fields of a document that a mask selects, or with an error.
  func send(_ result: Result<Document, Status>, mask: FieldMask?, in database: DatabaseID) {
    do {
      EncodedDocument.with(try result.get(), root: database.documentsRootBytes) {
        send(MaskedDocument($0, mask: mask))
      }
    } catch { fail(error) }
  }

  /// Responds with a sequence of messages, in one piece if it is short, or with an error.
  func send(_ producer: some ResponseProducer, in database: DatabaseID) {
    exchange.produce { [self] in
      guard !hasResponded else { return }
      do { try produce(producer, in: database) } catch { fail(error) }
    }
  }

  private func produce(_ producer: some ResponseProducer, in database: DatabaseID) throws {
    let stream = ResponseStream(
      producer, ProtobufResponseEncoder(compression), database: database, on: exchange)
    if let body = try stream.whole() {
      guard begin() else { return }
      return exchange.respond(
        status: 200, headers: { addHead(&$0) }, body: { $0.append(contentsOf: body) },
        trailers: { stream.addTrailers(to: &$0) })
    }
    guard begin(keepsDeadline: true) else { return }
    stopStream = { [weak stream] in stream?.stop($0) }
    stream.onFailure = { [weak exchange] in exchange?.logFailure(of: $0) }
    stream.onEnd = { [weak self] in self?.forget() }
    exchange.stream(status: 200, headers: { addHead(&$0) }, from: stream)
  }

  /// Responds with the messages of a bidirectional stream.
  func stream(_ stream: GRPCStream) {
    guard begin() else { return }
    stopStream = { [weak stream] in stream?.stop($0) }
    stream.onEnd = { [weak self] in self?.forget() }
    // Keep the stream until the response is complete: after the client disconnects nothing else holds it.
    exchange.onClose { stream.close() }
    exchange.onShutdown { [weak stream] in
      stream?.stop(Status(.unavailable, "The server is shutting down."), isOrderly: true)
    }
    exchange.stream(status: 200, headers: { addHead(&$0) }, from: stream)
  }

  /// Responds with an error: only header fields, no message.
  func fail(_ error: any Error) {
    guard begin() else { return }
    let status = Status(error, database: database)
    // The HTTP status of every gRPC response is 200.
    exchange.countedStatus = ErrorJSON.httpStatus(status.code)
    exchange.logFailure(of: status)
    exchange.respond(
      status: 200,
      headers: { headers in
        addHead(&headers)
        GRPCStatus.add(status, to: &headers)
      }, compressible: false, body: { _ in })
  }

  /// Marks the call as answered. Returns whether a response may be sent: only the first one, while the client is
  /// connected.
  ///
  /// - Parameter keepsDeadline: whether the deadline may still end the response, which is a stream.
  private func begin(keepsDeadline: Bool = false) -> Bool {
    guard !hasResponded else { return false }
    hasResponded = true
    if !keepsDeadline {
      timer?.cancel()
      timer = nil
    }
    return !exchange.isClosed
  }

  private func addHead(_ headers: inout HeaderWriter) {
    headers.add("content-type", "application/grpc")
    if compression.exchange != nil { headers.add("grpc-encoding", "gzip") }
    headers.add("grpc-accept-encoding", "identity,gzip")
  }

  // MARK: Deadline

  /// Ends the call at the client's deadline. Call it after the call has started, because most calls are complete by
  /// then.
  func watchDeadline() {
    guard let timeoutMilliseconds = head.timeoutMilliseconds, !hasResponded || stopStream != nil, !exchange.isClosed
    else { return }
    timer = exchange.loop.schedule(afterMilliseconds: timeoutMilliseconds) { [self] in
      let status = Status(.deadlineExceeded, "The deadline of \(timeoutMilliseconds) ms passed.")
      if let stopStream {
        stopStream(status)
        exchange.resume()
      } else {
        fail(status)
      }
    }
    exchange.onClose { [weak self] in self?.forget() }
  }

  private func forget() {
    timer?.cancel()
    timer = nil
    stopStream = nil
  }
}
