import Basics
import Files
import FileService
import Synchronization
import Transport

/// Passes the content of an upload from the connection to an ``Upload``. The loop gathers bytes into pieces, and the
/// upload's own queue writes them; at most a few megabytes wait in between.
///
/// After an error it discards up to ``DiscardedBody/bytesMax`` of the rest before it responds: a client that reads
/// only after it has sent everything would miss an earlier response.
///
/// Use it on the exchange's loop only. The work on the queue shares no state with it except the upload.
final class UploadBody: BodySink {
  /// Responds to the request. Runs on the loop.
  typealias Respond = @Sendable (Result<UploadResult, FilesError>) -> Void

  /// Begins the upload of a multipart body when the parts before its content have arrived. Gets the possible lengths of
  /// the content, or `nil` if they are unknown. Runs on the loop.
  typealias Begin = (MultipartHead, ClosedRange<Int>?) throws(FilesError) -> Upload

  /// The parts of a multipart body before the content.
  struct MultipartHead: Sendable {
    var metadata: [UInt8]
    var contentType: String?
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
    var heldBytesMax = 32 << 20
    /// The limit of a head while `heldBytesMax` is exceeded. A longer head is rejected: it cannot be written before
    /// it is complete, so pausing the client would not free memory.
    var crowdedHeadBytesMax = 8 << 10
  }

  /// The bytes in memory of all uploads of the process.
  private static let heldBytes = Atomic<Int>(0)

  private let exchange: Exchange
  private let respond: Respond
  private let limits: Limits
  private static let workers = BoundedWorkers("uploads", threads: WorkerLimits.uploadsThreadsMax, yieldsToLoops: true)
  /// The queue of the file. Tests wait for it.
  let queue = WorkerLane(on: workers)
  /// The upload, or `nil` until the head of a multipart body was authorized.
  private var upload: Upload?
  private var multipart: (reader: MultipartReader, begin: Begin)?
  private let bodyBytes: Int?
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

  /// Starts to receive a body that is only content.
  ///
  /// - Parameter bodyBytes: the length of the body, if known.
  init(
    _ exchange: Exchange, _ upload: Upload, bodyBytes: Int? = nil, limits: Limits = Limits(),
    respond: @escaping Respond
  ) {
    self.exchange = exchange
    self.bodyBytes = bodyBytes
    self.limits = limits
    self.respond = respond
    open(upload)
  }

  /// Starts to receive a body of two parts, from which the reader extracts the content.
  ///
  /// - Parameter bodyBytes: the length of the body, if known.
  init(
    _ exchange: Exchange, _ reader: MultipartReader, bodyBytes: Int?, limits: Limits = Limits(),
    begin: @escaping Begin, respond: @escaping Respond
  ) {
    self.exchange = exchange
    multipart = (reader, begin)
    self.bodyBytes = bodyBytes
    self.limits = limits
    self.respond = respond
    exchange.onClose { [weak self] in self?.isOver = true }
  }

  deinit { Self.heldBytes.subtract(piece.count + headBytes, ordering: .relaxed) }

  private func open(_ upload: Upload) {
    self.upload = upload
    let queue = queue
    queue.runAlways { upload.open() }
    exchange.onClose { [weak self] in
      self?.isOver = true
      queue.runAlways { upload.interrupt() }
    }
  }

  func received(_ bytes: UnsafeRawBufferPointer) {
    if refusal != nil { return discard(bytes.count) }
    guard !isOver else { return }
    guard case (var reader, let begin)? = multipart else { return gather(bytes) }
    multipart = nil
    do throws(FilesError) {
      try reader.read(bytes) { gather($0) }
      countHead(reader.heldBytes)
      if upload == nil { try readHead(of: reader, begin) }
      multipart = (reader, begin)
    } catch { stop(error) }
  }

  /// Begins the upload once the head has arrived.
  private func readHead(of reader: MultipartReader, _ begin: Begin) throws(FilesError) {
    guard reader.hasHead else {
      if headBytes > limits.crowdedHeadBytesMax && isCrowded { throw .tooManyUploads }
      return
    }
    let head = MultipartHead(metadata: reader.metadata, contentType: reader.contentType)
    open(try begin(head, reader.contentBytes(ofBody: bodyBytes)))
    if piece.count >= limits.pieceBytes || isCrowded { write() }
  }

  private func countHead(_ count: Int) {
    Self.heldBytes.add(count - headBytes, ordering: .relaxed)
    headBytes = count
  }

  func ended() {
    if let refusal { return refuse(refusal.error) }
    guard !isOver else { return }
    if let multipart, !multipart.reader.isWhole {
      stop(.invalid("Bad content type. The body ends before its last boundary."))
      return ended()
    }
    write()
    isOver = true
    guard let upload else { return }
    let (respond, loop) = (respond, exchange.loop)
    queue.runAlways {
      let result: Result<UploadResult, FilesError>
      do throws(FilesError) {
        guard let finished = try upload.finish() else { return }
        result = .success(finished)
      } catch { result = .failure(error) }
      loop.execute { respond(result) }
    }
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    if piece.isEmpty && isLarge { piece.reserveCapacity(limits.pieceBytes + (64 << 10)) }
    piece.append(contentsOf: bytes.assumingMemoryBound(to: UInt8.self))
    let (_, held) = Self.heldBytes.add(bytes.count, ordering: .relaxed)
    // Content that arrived together with the end of the head waits until the head was authorized.
    guard upload != nil else { return }
    if piece.count >= limits.pieceBytes || held > limits.heldBytesMax { write() }
  }

  /// Passes the gathered bytes to the queue.
  private func write() {
    guard !piece.isEmpty, let upload else { return }
    let bytes = piece
    piece = []
    isLarge = true
    waitingBytes += bytes.count
    if !isPaused && waitingBytes > (isCrowded ? 0 : limits.waitingBytesMax) {
      isPaused = true
      exchange.pauseBody()
    }
    let bound = LoopBound(self, to: exchange.loop)
    queue.runAlways {
      upload.append(bytes)
      Self.heldBytes.subtract(bytes.count, ordering: .relaxed)
      let error = upload.error
      bound.later { $0.wrote(bytes.count, error) }
    }
  }

  private var isCrowded: Bool { Self.heldBytes.load(ordering: .relaxed) > limits.heldBytesMax }

  private func wrote(_ count: Int, _ error: FilesError?) {
    waitingBytes -= count
    if let error, !isOver { stop(error) }
    if isPaused && response == nil && (waitingBytes == 0 || waitingBytes < limits.waitingBytesMin && !isCrowded) {
      isPaused = false
      exchange.resumeBody()
    }
  }

  /// Stops the upload with an error, which becomes the response.
  private func stop(_ error: FilesError) {
    guard !isOver else { return }
    isOver = true
    refusal = (error, 0)
    let bound = LoopBound(self, to: exchange.loop)
    queue.runAlways { [upload] in
      upload?.interrupt()
      bound.later { $0.released() }
    }
    Self.heldBytes.subtract(piece.count, ordering: .relaxed)
    piece = []
    multipart = nil
    countHead(0)
    if let bodyBytes, bodyBytes > DiscardedBody.bytesMax { refuse(error) }
  }

  private func discard(_ count: Int) {
    guard let known = refusal else { return }
    refusal?.discardedBytes += count
    guard known.discardedBytes + count > DiscardedBody.bytesMax else { return }
    refuse(known.error)
    // A client that sends without end is not read while the response waits.
    if response != nil && !isPaused {
      isPaused = true
      exchange.pauseBody()
    }
  }

  /// Responds with an error once the queue has released the file. Otherwise the client's next request could find the
  /// upload still in use.
  private func refuse(_ error: FilesError) {
    refusal = nil
    if isReleased { respond(.failure(error)) } else { response = error }
  }

  private func released() {
    isReleased = true
    guard let response else { return }
    self.response = nil
    if isPaused {
      isPaused = false
      exchange.resumeBody()
    }
    respond(.failure(response))
  }
}
