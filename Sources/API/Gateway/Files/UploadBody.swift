import Dispatch
import Files
import Synchronization
import Transport

/// Takes the content of an upload from the connection to the disk: gathered on the loop, written by a queue of its own,
/// and never more than a few megabytes in between.
///
/// After an error what still comes is thrown away up to ``DiscardedBody/bytesMax``, and answered then: a client that
/// sends all before it reads would miss an answer in between.
///
/// Belongs to the exchange's loop; what runs on the queue is given what it needs.
final class UploadBody: BodySink {
  /// What the queue does: opens the file, and makes of it what the upload is to become.
  struct Plan: Sendable {
    /// Opens the file that takes the content, once its head is judged.
    var open: @Sendable () throws(FilesError) -> OpenUploadFile
    /// Refuses content of which the head and perhaps the length are known, before it comes. On the loop.
    var authorizeHead: @Sendable (MultipartHead, ClosedRange<Int>?) throws(FilesError) -> Void = { _, _ throws(FilesError) in }
    /// Ends the upload. Returns how to answer, on the loop.
    var finish: @Sendable (OpenUploadFile, MultipartHead?) throws(FilesError) -> @Sendable () -> Void
    /// The client went away, or was refused: what arrived may be kept.
    var interrupt: @Sendable (OpenUploadFile) -> Void = { _ in }
    /// Answers that it failed, on the loop.
    var fail: @Sendable (FilesError) -> Void
  }

  /// What came before the content.
  struct MultipartHead: Sendable {
    var metadata: [UInt8]
    var contentType: String?
  }

  /// Where content goes: a new file, or that of an upload which has some already.
  struct OpenUploadFile: Sendable {
    let incoming: IncomingContent
    /// The upload in parts.
    var upload: OpenUpload?
    /// How long the content may become, and the error where more comes.
    var limit: (bytes: Int, error: FilesError)?
  }

  /// Bounds of memory.
  struct Limits: Sendable {
    /// Bytes gathered before they are written.
    var pieceBytes = 512 << 10
    /// Bytes of one upload that wait to be written when its client is told to wait, and when it may go on.
    var waitingBytesMax = 4 << 20
    var waitingBytesMin = 1 << 20
    /// Bytes of all uploads. When there are more, nothing is gathered, and a client waits for all that it sent.
    var heldBytesMax = 256 << 20
    /// Bytes of a head that are taken even then; what is longer is refused, as nobody can be told to wait for it.
    var crowdedHeadBytesMax = 8 << 10
  }

  /// What of all uploads of the process is in memory.
  private static let heldBytes = Atomic<Int>(0)

  private let exchange: Exchange
  private let plan: Plan
  private let limits: Limits
  private let queue = DispatchQueue(label: "hearth.upload", qos: .userInitiated)
  private let file = UploadFile()
  private var multipart: MultipartReader?
  private let isMultipart: Bool
  private let bodyBytes: Int?
  private var isHeadAuthorized = false
  /// Bytes of the head that count as held.
  private var headBytes = 0
  private var piece: [UInt8] = []
  private var isLarge = false
  private(set) var waitingBytes = 0
  private(set) var isPaused = false
  private var isOver = false
  /// The answer, and what was thrown away since it is known.
  private var refusal: (error: FilesError, discardedBytes: Int)?

  /// The file, once it is open. Only the upload's queue looks at it, so that nobody ever waits for the lock.
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

    /// Writes, unless something failed before.
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

    /// The file, which is the caller's from now on.
    func take() -> OpenUploadFile? {
      state.withLock { state in
        let file = state.file
        state.file = nil
        return file
      }
    }
  }

  /// Starts to take an upload.
  ///
  /// - Parameters:
  ///   - multipart: takes the content out of a body of two parts.
  ///   - bodyBytes: the length of the body, where it is known.
  init(
    _ exchange: Exchange, multipart: MultipartReader? = nil, bodyBytes: Int? = nil, limits: Limits = Limits(), _ plan: Plan
  ) {
    self.exchange = exchange
    self.multipart = multipart
    isMultipart = multipart != nil
    self.bodyBytes = bodyBytes
    self.limits = limits
    self.plan = plan
    // Who sent no head yet has no file: nobody knows whether it may come.
    if multipart == nil { openFile() }
    let (file, queue) = (file, queue)
    exchange.onClose { [weak self] in
      self?.isOver = true
      queue.async {
        if let open = file.take() { plan.interrupt(open) }
      }
    }
  }

  deinit { Self.heldBytes.subtract(piece.count + headBytes, ordering: .relaxed) }

  private func openFile() {
    let (plan, file) = (plan, file)
    queue.async { file.open(plan) }
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

  /// Opens the file once the head has come and is let in.
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
    if let refusal { return answer(refusal.error) }
    guard !isOver else { return }
    write()
    if let multipart, !multipart.isWhole {
      stop(.invalid("Bad content type. The body ends before its last boundary."))
      return ended()
    }
    isOver = true
    let (plan, file, loop) = (plan, file, exchange.loop)
    queue.async { [head] in
      let answer: @Sendable () -> Void
      do throws(FilesError) {
        if let error = file.error { throw error }
        guard let open = file.take() else { return }
        answer = try plan.finish(open, head)
      } catch {
        if let open = file.take() { plan.interrupt(open) }
        answer = { [error] in plan.fail(error) }
      }
      loop.execute(answer)
    }
  }

  /// What came before the content, once all of it has come.
  private var head: MultipartHead? {
    guard let multipart, multipart.hasHead else { return nil }
    return MultipartHead(metadata: multipart.metadata, contentType: multipart.contentType)
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    if piece.isEmpty && isLarge { piece.reserveCapacity(limits.pieceBytes + (64 << 10)) }
    piece.append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
    let (_, held) = Self.heldBytes.add(bytes.count, ordering: .relaxed)
    // Content that came with the head's end waits until that is judged.
    guard !isMultipart || isHeadAuthorized else { return }
    if piece.count >= limits.pieceBytes || held > limits.heldBytesMax { write() }
  }

  /// Hands on what was gathered.
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
    queue.async {
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

  /// Takes no more: the client is told why.
  private func stop(_ error: FilesError) {
    guard !isOver else { return }
    isOver = true
    refusal = (error, 0)
    let (plan, file) = (plan, file)
    queue.async {
      if let open = file.take() { plan.interrupt(open) }
    }
    Self.heldBytes.subtract(piece.count, ordering: .relaxed)
    piece = []
    multipart = nil
    countHead(0)
    if let bodyBytes, bodyBytes > DiscardedBody.bytesMax { answer(error) }
  }

  private func discard(_ count: Int) {
    guard let known = refusal else { return }
    refusal?.discardedBytes += count
    if known.discardedBytes + count > DiscardedBody.bytesMax { answer(known.error) }
  }

  private func answer(_ error: FilesError) {
    refusal = nil
    plan.fail(error)
  }
}
