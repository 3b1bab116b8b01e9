package import DocumentModel
import DocumentStore
import Synchronization

/// A response on a Write stream (`WriteResponse`).
package struct WriteStreamResponse: Sendable {
  /// The ID of the stream in its first response, otherwise empty.
  package var streamID = ""
  /// Never empty. The client sends it back with its next batch.
  package var streamToken: [UInt8]
  /// One result for each write of the batch; empty in the first response.
  package var results: [WriteResult] = []
  /// The commit time of the batch.
  package var commitTime: Timestamp?

  /// Creates a response that contains only a token.
  package init(streamToken: [UInt8]) { self.streamToken = streamToken }
}

/// One Write stream: batches of writes that are applied one after the other (listen-and-webchannel.md, section 2).
///
/// 1. A stream is used on the event-loop thread of its client.
/// 2. Responses are in the order of the requests. A batch starts when the response to the previous one has been
///    taken with ``next()``, so no batch is applied for a client that does not read.
/// 3. Each batch is authorized by the rules that are active when it is applied, as a Commit is. No batch starts
///    after the caller's token has expired.
/// 4. A batch that fails ends the stream, and later batches are not applied.
package final class WriteStream {
  /// The maximum number of waiting batches. Clients have up to ten in flight.
  package static let waitingBatchesMax = 32
  /// The approximate maximum size of waiting batches, in bytes. The last one may exceed it.
  package static let waitingBytesMax = 16 << 20

  /// A request that waits for its response.
  private enum Step {
    /// A request without writes: the first or the last one.
    case token
    case batch([Write], bytes: Int)
  }

  /// A batch that is being committed.
  private final class Running: Sendable {
    private let result = Mutex<Result<CommitOutcome, Status>?>(nil)

    func finish(_ outcome: Result<CommitOutcome, Status>) { result.withLock { $0 = outcome } }
    var outcome: Result<CommitOutcome, Status>? { result.withLock { $0 } }
  }

  private let service: FirestoreService
  private let id: DatabaseID
  private let caller: Caller
  private let clock: Clock
  private let wake: @Sendable () -> Void
  private let streamID = String(UInt64.random(in: 1...UInt64.max), radix: 36)
  private var waiting: [Step] = []
  private var waitingBytes = 0
  private var running: Running?
  /// The number of responses so far, from which tokens are made.
  private var responseCount = 0
  private var isOpened = false
  private let entry: OpenStreams.Entry
  private var isOver = false
  private var stopReason: Status?

  /// Opens a stream to a database. `wake` is called, on any thread, when there is something to pull.
  /// - Throws: The errors of ``FirestoreService/access(to:as:)``; `RESOURCE_EXHAUSTED` if the project has too many
  ///   streams.
  package init(_ service: FirestoreService, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void)
    throws
  {
    clock = try service.access(to: id, as: caller, creates: false).clock
    self.service = service
    self.id = id
    self.caller = caller
    self.wake = wake
    entry = try service.openStreams.add(as: caller, check: wake)
  }

  deinit { end() }

  /// Whether another request can be accepted. A handler that can make its client wait does so until there is room,
  /// and checks again when ``next()`` has returned a response.
  package var hasRoom: Bool { waiting.count < Self.waitingBatchesMax && waitingBytes < Self.waitingBytesMax }

  /// Whether all requests have been answered.
  package var isIdle: Bool { isOver || (waiting.isEmpty && running == nil && stopReason == nil) }

  /// Accepts a request. If the first request asks to resume a stream, that stream is unknown and the client gets a
  /// new one.
  /// - Throws: `INVALID_ARGUMENT` if the first request contains writes, `RESOURCE_EXHAUSTED` if ``hasRoom`` is
  ///   `false`. In both cases the stream has ended.
  package func receive(_ request: WriteStreamRequest) throws {
    guard !isOver, stopReason == nil else { return }
    guard hasRoom else {
      end()
      throw Status(
        .resourceExhausted,
        "More than \(Self.waitingBatchesMax) batches, or \(Self.waitingBytesMax) bytes of them, wait on this stream. "
          + "Wait for responses before you send more.")
    }
    guard isOpened || request.writes.isEmpty else {
      end()
      throw Status(.invalidArgument, "The first request of a Write stream opens it, and must have no writes.")
    }
    isOpened = true
    if request.writes.isEmpty {
      waiting.append(.token)
      if running == nil, waiting.count == 1 { wake() }
    } else {
      let bytes = CommitRequest(request.writes).bytes
      waiting.append(.batch(request.writes, bytes: bytes))
      waitingBytes += bytes
      begin()
    }
  }

  /// Returns the next response, or `nil` if none is ready. Call it until it returns `nil`.
  /// - Throws: ``Status`` of the batch that ended the stream, after the responses to earlier batches.
  package func next() throws -> WriteStreamResponse? {
    guard !isOver else { return nil }
    if let running {
      guard let outcome = running.outcome else { return nil }
      self.running = nil
      do throws(Status) {
        var response = makeResponse()
        let committed = try outcome.get()
        response.results = committed.results
        response.commitTime = committed.version
        begin()
        return response
      } catch {
        end()
        throw error
      }
    }
    if let stopReason {
      end()
      throw stopReason
    }
    guard case .token? = waiting.first else {
      do throws(Status) {
        try service.openStreams.requireContinuing()
        try caller.checkToken(clock)
      } catch {
        end()
        throw error
      }
      return nil
    }
    waiting.removeFirst()
    var response = makeResponse()
    if responseCount == 1 { response.streamID = streamID }
    begin()
    return response
  }

  /// Ends the stream with an error, after the response to the batch being committed. Later batches are not applied.
  package func stop(_ status: Status) {
    guard !isOver else { return }
    stopReason = stopReason ?? status
    forgetWaiting()
    if running == nil { wake() }
  }

  /// Ends the stream. Batches that have not started are not applied.
  package func end() {
    guard !isOver else { return }
    isOver = true
    service.openStreams.remove(entry)
    running = nil
    forgetWaiting()
  }

  private func makeResponse() -> WriteStreamResponse {
    defer { responseCount += 1 }
    return WriteStreamResponse(streamToken: Array(String(responseCount).utf8))
  }

  /// Starts the first waiting batch, unless another one is being committed or another response must precede it.
  private func begin() {
    guard running == nil, case .batch(let writes, let bytes)? = waiting.first else { return }
    waiting.removeFirst()
    waitingBytes -= bytes
    let running = Running()
    self.running = running
    do {
      try caller.checkToken(clock)
      try service.commit(writes, in: id, as: caller) { [wake] result in
        running.finish(result)
        wake()
      }
    } catch {
      running.finish(.failure(Status(error, database: id)))
      wake()
    }
  }

  private func forgetWaiting() {
    waiting = []
    waitingBytes = 0
  }
}
