import DatabaseService
import DocumentModel
import Transport

/// One gRPC call that is under way: who waits for the answer, until when, and how it is compressed. Belongs to the loop
/// of its exchange; what answers from another thread carries ``bound``.
final class GRPCCall {
  let exchange: Exchange
  /// How the answer is compressed: as the request was, which shows that the client can.
  let compression: GRPCCompression
  /// Who calls.
  var caller = Caller.user(nil)
  /// The database the call is for, once that is known: errors name documents in it.
  var database: DatabaseID?

  /// What the head of the call says.
  let head: GRPCRequestHead
  /// Whether the answer was sent, or begun, or came too late.
  private(set) var isAnswered = false
  private var timer: LoopTimer?
  private var stopStream: ((Status) -> Void)?

  init(_ exchange: Exchange, _ head: GRPCRequestHead) {
    self.exchange = exchange
    self.head = head
    compression = GRPCCompression(exchange: head.isGzip ? exchange : nil)
  }

  /// The call in a form that other threads may carry.
  var bound: LoopBound<GRPCCall> { LoopBound(self, to: exchange.loop) }

  /// Has the answer's source asked again; may be called on any thread.
  var wake: @Sendable () -> Void {
    { [exchange] in
      if exchange.loop.isOnLoop { exchange.resume() } else { exchange.loop.execute { exchange.resume() } }
    }
  }

  /// What a compressed message of the request holds.
  /// - Throws: `INTERNAL` for what is no gzip, or was not announced, `RESOURCE_EXHAUSTED` for what is too large.
  func decompress(_ message: UnsafeRawBufferPointer) throws -> [UInt8] {
    guard head.isGzip else { throw Status(.internal, "A compressed message came without grpc-encoding.") }
    do throws(GzipError) {
      return try exchange.decompress(message, bytesMax: Limits.enterpriseRequestBytesMax)
    } catch {
      switch error {
      case .malformed: throw Status(.internal, "The request's message is no gzip.")
      case .tooLarge: throw GRPCHandler.tooLarge(Limits.enterpriseRequestBytesMax)
      }
    }
  }

  // MARK: Answering

  /// Answers with the message that `write` appends, or with the error it throws.
  func send(_ write: (inout [UInt8]) throws -> Void) {
    var body: [UInt8] = []
    do {
      body.reserveCapacity(512)
      let start = GRPCFrame.begin(in: &body)
      try write(&body)
      compression.end(start, in: &body)
    } catch { return fail(error) }
    guard begin() else { return }
    exchange.respond(
      status: 200, headers: { addHead(&$0) }, body: { $0.append(contentsOf: body) },
      trailers: { GRPCStatus.addOK(to: &$0) })
  }

  /// Answers with an empty message.
  func sendEmpty() { send { _ in } }

  /// Answers with messages, all at once where they are few.
  /// - Throws: what fails before anything is sent.
  func send(
    _ answer: some ResponseProducer, _ response: ProtobufResponseEncoder.Response, mask: FieldMask?, in database: DatabaseID
  ) throws {
    let encoder = ProtobufResponseEncoder(response, database: database, mask: mask, compression)
    let stream = ResponseStream(answer, encoder, database: database)
    if let body = try stream.whole() {
      guard begin() else { return }
      return exchange.respond(
        status: 200, headers: { addHead(&$0) }, body: { $0.append(contentsOf: body) },
        trailers: { stream.addTrailers(to: &$0) })
    }
    guard begin() else { return }
    stopStream = { [weak stream] in stream?.stop($0) }
    stream.onFailure = { [weak exchange] in exchange?.tell($0) }
    stream.onEnd = { [weak self] in self?.forget() }
    exchange.stream(status: 200, headers: { addHead(&$0) }, from: stream)
  }

  /// Answers with the messages of a call that streams both ways.
  func stream(_ stream: GRPCStream) {
    guard begin() else { return }
    stopStream = { [weak stream] in stream?.stop($0) }
    stream.onEnd = { [weak self] in self?.forget() }
    // Held until the reply is complete: nobody else holds it when the client is gone.
    exchange.onClose { stream.close() }
    exchange.onShutdown { [weak stream] in
      stream?.stop(Status(.unavailable, "The server is shutting down."), isOrderly: true)
    }
    exchange.stream(status: 200, headers: { addHead(&$0) }, from: stream)
  }

  /// Answers with an error: fields alone, no message.
  func fail(_ error: any Error) {
    guard begin() else { return }
    let status = Status(error, database: database)
    // Over HTTP every answer is a 200.
    exchange.countedStatus = ErrorJSON.httpStatus(status.code)
    exchange.tell(status)
    exchange.respond(
      status: 200,
      headers: { headers in
        addHead(&headers)
        GRPCStatus.add(status, to: &headers)
      }, compressible: false, body: { _ in })
  }

  /// Whether an answer may be sent: the first one, while the client waits.
  private func begin() -> Bool {
    guard !isAnswered else { return false }
    isAnswered = true
    timer?.cancel()
    timer = nil
    return !exchange.isClosed
  }

  private func addHead(_ headers: inout HeaderWriter) {
    headers.add("content-type", "application/grpc")
    if compression.exchange != nil { headers.add("grpc-encoding", "gzip") }
    headers.add("grpc-accept-encoding", "identity,gzip")
  }

  // MARK: Time

  /// Ends the call at the client's deadline. Call it when the call is under way; most are over by then.
  func watchDeadline() {
    guard let timeoutMilliseconds = head.timeoutMilliseconds, !isAnswered || stopStream != nil, !exchange.isClosed else { return }
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
