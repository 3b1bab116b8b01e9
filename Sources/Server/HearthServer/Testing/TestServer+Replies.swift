import Synchronization
import Transport

extension TestServer {
  /// The reply to a request: its head at once, its body as it is read.
  public struct Response: Sendable {
    /// The status.
    public let status: Int
    /// The header fields.
    public let headers: [(name: String, value: String)]
    /// The body, piece by piece. A reply without an end of its own ends when it is let go.
    public let body: Body

    init(_ head: LocalResponseHead, _ call: LocalCall) {
      status = head.status
      headers = head.fields
      body = Body(call)
    }

    /// The value of the first field of that name.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased().utf8.elementsEqual(name.lowercased().utf8) }?.value
    }

    /// The whole body. Waits for its end: not for a stream that has none.
    /// - Throws: ``CutShort``, and `CancellationError`.
    public func bytes() async throws -> [UInt8] {
      var all: [UInt8] = []
      for try await piece in body { all += piece }
      return all
    }

    /// The whole body as a text. Waits for its end.
    /// - Throws: ``CutShort``, and `CancellationError`.
    public func text() async throws -> String { String(decoding: try await bytes(), as: UTF8.self) }
  }

  /// The body of a reply, made only as fast as it is read. It is read once, by one task.
  public struct Body: AsyncSequence, Sendable {
    /// Some bytes, at least one.
    public typealias Element = [UInt8]

    private let reader: BodyReader

    init(_ call: LocalCall) { reader = BodyReader(call) }

    /// Where reading stands, which is the same for all iterators.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// The fields that follow the body, once it was read to its end: a gRPC call's status is there.
    public var trailers: [(name: String, value: String)] { reader.trailers }

    /// Reads a body.
    public struct Iterator: AsyncIteratorProtocol {
      let reader: BodyReader

      /// The next bytes, when there are some; `nil` at the end.
      /// - Throws: ``CutShort``, and `CancellationError`.
      public mutating func next() async throws -> [UInt8]? { try await reader.next() }
    }
  }

  /// A reply that ended before it was whole, because the server was reset or went away, or what it read failed.
  public struct CutShort: Error, Sendable, CustomStringConvertible {
    /// What happened.
    public var description: String { "the reply was cut short: the server was reset or went away" }
  }
}

/// The one reader of a body.
final class BodyReader: Sendable {
  private let call: LocalCall
  private let trailingFields = Mutex<[LocalRequest.Field]>([])

  init(_ call: LocalCall) { self.call = call }

  var trailers: [LocalRequest.Field] { trailingFields.withLock { $0 } }

  func next() async throws -> [UInt8]? {
    try Task.checkCancellation()
    let piece = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in call.next { continuation.resume(returning: $0) } }
    } onCancel: {
      call.cancel()
    }
    switch piece {
    case .bytes(let bytes): return bytes
    case .end(let trailers):
      trailingFields.withLock { $0 = trailers }
      return nil
    case .cut:
      try Task.checkCancellation()
      throw TestServer.CutShort()
    }
  }
}

/// Holds a call that may be cancelled before it was made.
final class CallBox: Sendable {
  private struct State {
    var call: LocalCall?
    var isCancelled = false
  }

  private let state = Mutex(State())

  func put(_ call: LocalCall) {
    let isCancelled = state.withLock { state in
      state.call = call
      return state.isCancelled
    }
    if isCancelled { call.cancel() }
  }

  func take() -> LocalCall? { state.withLock { $0.call } }

  func cancel() {
    let call = state.withLock { state in
      state.isCancelled = true
      return state.call
    }
    call?.cancel()
  }
}
