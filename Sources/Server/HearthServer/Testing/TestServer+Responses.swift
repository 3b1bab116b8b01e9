import Synchronization
import Transport

extension TestServer {
  /// The response to a request. The head is complete, and the body is produced as it is read.
  public struct Response: Sendable {
    public let status: Int
    public let headers: [(name: String, value: String)]
    /// The body, in pieces. If the body is a stream without an end, it ends when the response is released.
    public let body: Body

    init(_ head: LocalResponseHead, _ call: LocalCall) {
      status = head.status
      headers = head.fields
      body = Body(call)
    }

    /// Returns the value of the first field with a name, ignoring case, or `nil` if none exists.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased().utf8.elementsEqual(name.lowercased().utf8) }?.value
    }

    /// Returns the whole body. Waits for its end, so do not call it on an endless stream.
    /// - Throws: ``ResponseInterrupted`` if the server ended the response early, or `CancellationError`.
    public func bytes() async throws -> [UInt8] {
      var all: [UInt8] = []
      for try await piece in body { all += piece }
      return all
    }

    /// Returns the whole body as text. Waits for its end, so do not call it on an endless stream.
    /// - Throws: ``ResponseInterrupted`` if the server ended the response early, or `CancellationError`.
    public func text() async throws -> String { String(decoding: try await bytes(), as: UTF8.self) }
  }

  /// The body of a response, produced only as fast as it is read. One task can read it, once.
  public struct Body: AsyncSequence, Sendable {
    /// A piece of the body, at least one byte.
    public typealias Element = [UInt8]

    private let reader: BodyReader

    init(_ call: LocalCall) { reader = BodyReader(call) }

    /// Returns an iterator. All iterators share one position.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// The trailer fields, available after the body was read to its end. A gRPC response has its status there.
    public var trailers: [(name: String, value: String)] { reader.trailers }

    /// An iterator over the pieces of a body.
    public struct Iterator: AsyncIteratorProtocol {
      let reader: BodyReader

      /// Returns the next piece as soon as it is available, or `nil` at the end.
      /// - Throws: ``ResponseInterrupted`` if the server ended the response early, or `CancellationError`.
      public mutating func next() async throws -> [UInt8]? { try await reader.next() }
    }
  }

  /// The error for a response that ended early because the server was reset or released, or failed to read the
  /// content.
  public struct ResponseInterrupted: Error, Sendable, CustomStringConvertible {
    public var description: String {
      "the response ended early: the server was reset or released, or failed to read the content"
    }
  }
}

/// The only reader of a body.
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
      throw TestServer.ResponseInterrupted()
    }
  }
}

/// A local call that can be cancelled before it exists.
final class CancellableCall: Sendable {
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

  var call: LocalCall? { state.withLock { $0.call } }

  func cancel() {
    let call = state.withLock { state in
      state.isCancelled = true
      return state.call
    }
    call?.cancel()
  }
}
