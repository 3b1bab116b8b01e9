package import DocumentModel
import DocumentStore
import Synchronization

/// An answer on a Write stream (`WriteResponse`).
package struct WriteStreamResponse: Sendable {
  /// The stream, in its first answer; else empty.
  package var streamID = ""
  /// Never empty; a client sends it back with its next batch.
  package var streamToken: [UInt8]
  /// One for each write of the batch; none in the first answer.
  package var results: [WriteResult] = []
  /// When the batch was committed.
  package var commitTime: Timestamp?

  /// An answer that carries a token only.
  package init(streamToken: [UInt8]) { self.streamToken = streamToken }
}

/// One Write stream: batches, applied one after the other, answered in order (listen-and-webchannel.md, section 2).
///
/// Belongs to the loop's thread of its client. A batch that fails ends the stream, and nothing behind it is applied.
/// Each batch is judged by the rules in force when it is applied, as a Commit is. A batch begins when the answer to the
/// one before was taken: a client that takes no answers has nothing more applied. None begins once the caller's token is
/// over.
package final class WriteStream {
  /// Batches that may wait behind the one being applied. Clients have ten on their way.
  package static let waitingBatchesMax = 32
  /// About how many bytes waiting batches may have; the last of them may go beyond.
  package static let waitingBytesMax = 16 << 20

  /// What is to be answered.
  private enum Step {
    /// A request without writes: the first, or the last.
    case token
    case batch([Write], bytes: Int)
  }

  /// A batch on its way through the writer.
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
  /// Answers given, which is what a token says.
  private var answers = 0
  private var isOpened = false
  private var isOver = false
  private var stopReason: Status?

  /// Opens a stream to a database. `wake` is called, on any thread, when there is something to pull.
  /// - Throws: as ``FirestoreService/access(to:as:)``.
  package init(_ service: FirestoreService, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void) throws {
    clock = try service.access(to: id, as: caller).database.clock
    self.service = service
    self.id = id
    self.caller = caller
    self.wake = wake
  }

  /// Whether another request is taken now. A dialect that can make its client wait does so until then; it is told of
  /// by ``next()`` having returned an answer.
  package var hasRoom: Bool { waiting.count < Self.waitingBatchesMax && waitingBytes < Self.waitingBytesMax }

  /// Whether every request was answered.
  package var isIdle: Bool { isOver || (waiting.isEmpty && running == nil && stopReason == nil) }

  /// Takes a request. The stream that a first request wants to resume is not known any more: it is given a new one.
  /// - Throws: `INVALID_ARGUMENT` for a first request with writes, `RESOURCE_EXHAUSTED` for what has no room; the
  ///   stream is over then.
  package func receive(_ request: WriteStreamRequest) throws {
    guard !isOver, stopReason == nil else { return }
    guard hasRoom else {
      end()
      throw Status(
        .resourceExhausted,
        "More than \(Self.waitingBatchesMax) batches, or \(Self.waitingBytesMax) bytes of them, wait on this stream. "
          + "Wait for answers before sending more.")
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

  /// The next answer, where there is one; call it until there is none.
  /// - Throws: ``Status`` of the batch that ended the stream, after the answers to those before it.
  package func next() throws -> WriteStreamResponse? {
    guard !isOver else { return nil }
    if let running {
      guard let outcome = running.outcome else { return nil }
      self.running = nil
      do throws(Status) {
        var response = answer()
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
    guard case .token? = waiting.first else { return nil }
    waiting.removeFirst()
    var response = answer()
    if answers == 1 { response.streamID = streamID }
    begin()
    return response
  }

  /// Has the stream end with an error, once the batch being applied was answered; none behind it is applied.
  package func stop(_ status: Status) {
    guard !isOver else { return }
    stopReason = stopReason ?? status
    forgetWaiting()
    if running == nil { wake() }
  }

  /// Ends the stream: batches not yet begun are not applied.
  package func end() {
    isOver = true
    running = nil
    forgetWaiting()
  }

  private func answer() -> WriteStreamResponse {
    defer { answers += 1 }
    return WriteStreamResponse(streamToken: Array(String(answers).utf8))
  }

  /// Begins the first batch of those that wait, unless one is under way or something else is to be answered first.
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
