import Dispatch
import Files
import Synchronization
import Transport

/// Takes the content of an upload from the connection to the disk: gathered on the loop, written by a queue of its own,
/// and never more than a few megabytes in between.
///
/// Belongs to the exchange's loop; what runs on the queue is given what it needs.
final class UploadBody: BodySink {
  /// What the queue does: opens the file, and makes of it what the upload is to become.
  struct Plan: Sendable {
    /// Opens the file that takes the content.
    var open: @Sendable () throws(FilesError) -> OpenUploadFile
    /// Ends the upload. Returns how to answer, on the loop.
    var finish: @Sendable (OpenUploadFile, MultipartHead?) throws(FilesError) -> @Sendable () -> Void
    /// The client went away: what arrived may be kept.
    var interrupt: @Sendable (OpenUploadFile) -> Void = { _ in }
    /// Answers that it failed, on the loop.
    var fail: @Sendable (FilesError) -> Void
  }

  /// What came before the content.
  struct MultipartHead: Sendable {
    var metadata: [UInt8]
    var contentType: String?
  }

  /// Where content goes: a new file, or one that has some already.
  enum OpenUploadFile: Sendable {
    case new(IncomingContent)
    case resumed(OpenUpload)

    var incoming: IncomingContent {
      switch self {
      case .new(let incoming): incoming
      case .resumed(let upload): upload.incoming
      }
    }
  }

  /// Bytes gathered before they are written.
  private static let pieceBytes = 256 << 10
  /// Bytes that wait to be written when the client is told to wait, and when it may go on.
  private static let waitingBytesMax = 4 << 20
  private static let waitingBytesMin = 1 << 20

  private let exchange: Exchange
  private let plan: Plan
  private let queue = DispatchQueue(label: "hearth.upload", qos: .userInitiated)
  private let file = FileInHand()
  private var multipart: MultipartReader?
  private var piece: [UInt8] = []
  private var waitingBytes = 0
  private var isPaused = false
  private var isOver = false

  /// The file, once it is open. Only the upload's queue looks at it, so that nobody ever waits for the lock.
  private final class FileInHand: Sendable {
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
        do throws(FilesError) {
          try bytes.withRawBytes { (bytes) throws(FilesError) in try file.incoming.append(bytes) }
        } catch { state.error = error }
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
  /// - Parameter multipart: takes the content out of a body of two parts.
  init(_ exchange: Exchange, multipart: MultipartReader? = nil, _ plan: Plan) {
    self.exchange = exchange
    self.multipart = multipart
    self.plan = plan
    let file = file
    queue.async { file.open(plan) }
    let queue = queue
    exchange.onClose { [weak self] in
      self?.isOver = true
      queue.async {
        if let open = file.take() { plan.interrupt(open) }
      }
    }
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    guard !isOver else { return }
    if var reader = multipart {
      multipart = nil
      do throws(FilesError) {
        try reader.read(bytes) { gather($0) }
        multipart = reader
      } catch { stop(error) }
    } else {
      gather(bytes)
    }
  }

  func ended() {
    guard !isOver else { return }
    write()
    var head: MultipartHead?
    if let multipart {
      guard multipart.isWhole else {
        return stop(.invalid("Bad content type. The body ends before its last boundary."))
      }
      head = MultipartHead(metadata: multipart.metadata, contentType: multipart.contentType)
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
        answer = { [error] in plan.fail(error) }
      }
      loop.execute(answer)
    }
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    if piece.isEmpty { piece.reserveCapacity(Self.pieceBytes + (64 << 10)) }
    piece.append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
    if piece.count >= Self.pieceBytes { write() }
  }

  /// Hands on what was gathered.
  private func write() {
    guard !piece.isEmpty else { return }
    let bytes = piece
    piece = []
    waitingBytes += bytes.count
    if waitingBytes > Self.waitingBytesMax, !isPaused {
      isPaused = true
      exchange.pauseBody()
    }
    let file = file
    let bound = LoopBound(self, to: exchange.loop)
    queue.async {
      file.append(bytes)
      let error = file.error
      bound.later { $0.wrote(bytes.count, error) }
    }
  }

  private func wrote(_ count: Int, _ error: FilesError?) {
    waitingBytes -= count
    if let error, !isOver { stop(error) }
    if isPaused && waitingBytes < Self.waitingBytesMin {
      isPaused = false
      exchange.resumeBody()
    }
  }

  /// Answers before the body is whole.
  private func stop(_ error: FilesError) {
    isOver = true
    let (plan, file) = (plan, file)
    queue.async {
      if let open = file.take() { plan.interrupt(open) }
    }
    plan.fail(error)
  }
}
