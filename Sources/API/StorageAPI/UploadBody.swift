import Basics
import Files
import Synchronization
import Transport

/// Writes the content of an upload from the connection to the disk. The loop gathers bytes into pieces, and the
/// upload's own queue writes them; at most a few megabytes wait in between.
///
/// After an error it discards up to ``DiscardedBody/bytesMax`` of the rest before it responds: a client that reads
/// only after it has sent everything would miss an earlier response.
///
/// Use it on the exchange's loop only. The work on the queue shares no state with it except the file.
final class UploadBody: BodySink {
  /// The steps of an upload. All run on the queue unless they say otherwise.
  struct Plan: Sendable {
    /// Opens the file for the content, after the head was authorized.
    var open: @Sendable () throws(FilesError) -> OpenUploadFile
    /// Rejects an upload by its head and, if known, its possible lengths, before the content arrives. Runs on the
    /// loop.
    var authorizeHead: @Sendable (MultipartHead, ClosedRange<Int>?) throws(FilesError) -> Void = {
      _, _ throws(FilesError) in
    }
    /// Finishes the upload. Returns a closure that responds, to be run on the loop.
    var finish: @Sendable (OpenUploadFile, MultipartHead?) throws(FilesError) -> @Sendable () -> Void
    /// Handles an upload that was rejected or whose client disconnected. It may keep the received bytes.
    var interrupt: @Sendable (OpenUploadFile) -> Void = { _ in }
    /// Responds with an error. Runs on the loop.
    var fail: @Sendable (FilesError) -> Void
  }

  /// The parts of a multipart body before the content.
  struct MultipartHead: Sendable {
    var metadata: [UInt8]
    var contentType: String?
  }

  /// The file that receives the content: a new one, or that of a resumable upload with earlier parts.
  struct OpenUploadFile: Sendable {
    let incoming: IncomingContent
    /// The resumable upload, if it is one.
    var upload: OpenUpload?
    /// The maximum length of the content, and the error if it gets longer.
    var limit: (bytes: Int, error: FilesError)?
  }

  /// The limits of memory, in bytes.
  struct Limits: Sendable {
    /// The size of a piece at which it is written.
    var pieceBytes = 512 << 10
    /// While more than `waitingBytesMax` of one upload wait to be written, the server does not read from its client
    /// until fewer than `waitingBytesMin` wait.
    var waitingBytesMax = 4 << 20
    var waitingBytesMin = 1 << 20
    /// The limit of all uploads together. Above it every piece is written at once, and the server reads from a
    /// client only after it has written all that the client sent.
    var heldBytesMax = 256 << 20
    /// The limit of a head while `heldBytesMax` is exceeded. A longer head is rejected: it cannot be written before
    /// it is complete, so pausing the client would not free memory.
    var crowdedHeadBytesMax = 8 << 10
  }

  /// The bytes in memory of all uploads of the process.
  private static let heldBytes = Atomic<Int>(0)

  private let exchange: Exchange
  private let plan: Plan
  private let limits: Limits
  private static let workers = BoundedWorkers("uploads", threads: WorkerLimits.uploadsThreadsMax)
  /// The queue of the file. Tests wait for it.
  let queue = WorkerLane(on: workers)
  private let file = UploadFile()
  private var multipart: MultipartReader?
  private let isMultipart: Bool
  private let bodyBytes: Int?
  private var isHeadAuthorized = false
  /// The number of bytes of the head that are included in `heldBytes`.
  private var headBytes = 0
  private var piece: [UInt8] = []
  private var isLarge = false
  private(set) var waitingBytes = 0
  private(set) var isPaused = false
  private var isOver = false
  /// The error to respond with, and the number of bytes discarded since it occurred.
  private var refusal: (error: FilesError, discardedBytes: Int)?
  /// Whether the queue has released the file of a stopped upload, and the error to respond with when it has.
  private var isReleased = false
  private var response: FilesError?

  /// The open file and its first error. Only the upload's queue uses it, so the lock is never contended.
  private final class UploadFile: Sendable {
    private struct State {
      var file: OpenUploadFile?
      var error: FilesError?
    }

    private let state = Mutex(State())

    var error: FilesError? { state.withLock { $0.error } }

    func open(_ plan: Plan) {
      state.withLock { state in
        do throws(FilesError) { state.file = try plan.open() } catch { state.error = error }
      }
    }

    /// Appends to the file, unless an earlier operation failed.
    func append(_ bytes: [UInt8]) {
      state.withLock { state in
        guard state.error == nil, let file = state.file else { return }
        if let limit = file.limit, bytes.count > limit.bytes - file.incoming.size {
          state.error = limit.error
          return
        }
        do throws(FilesError) { try file.incoming.append(bytes) } catch { state.error = error }
      }
    }

    /// Takes the file out: the caller owns it from now on.
    func take() -> OpenUploadFile? {
      state.withLock { state in
        let file = state.file
        state.file = nil
        return file
      }
    }
  }

  /// Starts to receive an upload.
  ///
  /// - Parameters:
  ///   - multipart: extracts the content from a body with two parts.
  ///   - bodyBytes: the length of the body, if known.
  init(
    _ exchange: Exchange, multipart: MultipartReader? = nil, bodyBytes: Int? = nil, limits: Limits = Limits(),
    _ plan: Plan
  ) {
    self.exchange = exchange
    self.multipart = multipart
    isMultipart = multipart != nil
    self.bodyBytes = bodyBytes
    self.limits = limits
    self.plan = plan
    // A multipart upload opens its file only after its head was authorized.
    if multipart == nil { openFile() }
    let (file, queue) = (file, queue)
    exchange.onClose { [weak self] in
      self?.isOver = true
      queue.run {
        if let open = file.take() { plan.interrupt(open) }
      }
    }
  }

  deinit { Self.heldBytes.subtract(piece.count + headBytes, ordering: .relaxed) }

  private func openFile() {
    let (plan, file) = (plan, file)
    queue.run { file.open(plan) }
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    if refusal != nil { return discard(bytes.count) }
    guard !isOver else { return }
    if var reader = multipart {
      multipart = nil
      do throws(FilesError) {
        try reader.read(bytes) { gather($0) }
        multipart = reader
        countHead(reader.heldBytes)
        if !isHeadAuthorized { try authorizeHead(reader) }
      } catch { stop(error) }
    } else {
      gather(bytes)
    }
  }

  /// Authorizes the head once it has arrived, and opens the file.
  private func authorizeHead(_ reader: MultipartReader) throws(FilesError) {
    guard let head else {
      if headBytes > limits.crowdedHeadBytesMax && isCrowded { throw .tooManyUploads }
      return
    }
    try plan.authorizeHead(head, reader.contentBytes(ofBody: bodyBytes))
    isHeadAuthorized = true
    openFile()
    if piece.count >= limits.pieceBytes || isCrowded { write() }
  }

  private func countHead(_ count: Int) {
    Self.heldBytes.add(count - headBytes, ordering: .relaxed)
    headBytes = count
  }

  func ended() {
    if let refusal { return respond(refusal.error) }
    guard !isOver else { return }
    write()
    if let multipart, !multipart.isWhole {
      stop(.invalid("Bad content type. The body ends before its last boundary."))
      return ended()
    }
    isOver = true
    let (plan, file, loop) = (plan, file, exchange.loop)
    queue.run { [head] in
      let response: @Sendable () -> Void
      do throws(FilesError) {
        if let error = file.error { throw error }
        guard let open = file.take() else { return }
        response = try plan.finish(open, head)
      } catch {
        if let open = file.take() { plan.interrupt(open) }
        response = { [error] in plan.fail(error) }
      }
      loop.execute(response)
    }
  }

  /// The parts before the content, once they have arrived completely.
  private var head: MultipartHead? {
    guard let multipart, multipart.hasHead else { return nil }
    return MultipartHead(metadata: multipart.metadata, contentType: multipart.contentType)
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    if piece.isEmpty && isLarge { piece.reserveCapacity(limits.pieceBytes + (64 << 10)) }
    piece.append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
    let (_, held) = Self.heldBytes.add(bytes.count, ordering: .relaxed)
    // Content that arrived together with the end of the head waits until the head was authorized.
    guard !isMultipart || isHeadAuthorized else { return }
    if piece.count >= limits.pieceBytes || held > limits.heldBytesMax { write() }
  }

  /// Passes the gathered bytes to the queue.
  private func write() {
    guard !piece.isEmpty else { return }
    let bytes = piece
    piece = []
    isLarge = true
    waitingBytes += bytes.count
    if !isPaused && waitingBytes > (isCrowded ? 0 : limits.waitingBytesMax) {
      isPaused = true
      exchange.pauseBody()
    }
    let file = file
    let bound = LoopBound(self, to: exchange.loop)
    queue.run {
      file.append(bytes)
      Self.heldBytes.subtract(bytes.count, ordering: .relaxed)
      let error = file.error
      bound.later { $0.wrote(bytes.count, error) }
    }
  }

  private var isCrowded: Bool { Self.heldBytes.load(ordering: .relaxed) > limits.heldBytesMax }

  private func wrote(_ count: Int, _ error: FilesError?) {
    waitingBytes -= count
    if let error, !isOver { stop(error) }
    if isPaused && (waitingBytes == 0 || waitingBytes < limits.waitingBytesMin && !isCrowded) {
      isPaused = false
      exchange.resumeBody()
    }
  }

  /// Stops the upload with an error, which becomes the response.
  private func stop(_ error: FilesError) {
    guard !isOver else { return }
    isOver = true
    refusal = (error, 0)
    let (plan, file) = (plan, file)
    let bound = LoopBound(self, to: exchange.loop)
    queue.run {
      if let open = file.take() { plan.interrupt(open) }
      bound.later { $0.released() }
    }
    Self.heldBytes.subtract(piece.count, ordering: .relaxed)
    piece = []
    multipart = nil
    countHead(0)
    if let bodyBytes, bodyBytes > DiscardedBody.bytesMax { respond(error) }
  }

  private func discard(_ count: Int) {
    guard let known = refusal else { return }
    refusal?.discardedBytes += count
    if known.discardedBytes + count > DiscardedBody.bytesMax { respond(known.error) }
  }

  /// Responds with an error once the queue has released the file. Otherwise the client's next request could find the
  /// upload still in use.
  private func respond(_ error: FilesError) {
    refusal = nil
    if isReleased { plan.fail(error) } else { response = error }
  }

  private func released() {
    isReleased = true
    if let response { plan.fail(response) }
  }
}
