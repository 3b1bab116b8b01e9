/// The reason for which a peer gave no complete response to a request.
enum PeerFailure {
  /// The peer certainly did not begin to handle the request: it received nothing of it, or said so.
  case notProcessed
  /// The peer may have handled the request, in part or completely.
  case mayHaveRun
}

/// The sender of a request to a peer. Belongs to its loop.
protocol PeerStreamOwner: AnyObject {
  /// Writes the next bytes of the request's body.
  func nextUpload(into space: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool)
  /// Called after more of the response has arrived: its head, bytes, or the end. Not called within the library.
  func responseAdvanced(_ stream: PeerStream)
  /// Called once, if the stream ends before the response is complete.
  func streamFailed(_ stream: PeerStream, _ failure: PeerFailure)
}

/// One request on a connection to a peer, with the part of its response that has arrived. Belongs to its loop.
final class PeerStream {
  /// The most bytes of the head and the trailers of a response.
  static let fieldBytesMax = 256 * 1024

  let id: Int32
  /// Retained until the stream ends.
  private(set) var owner: (any PeerStreamOwner)?
  /// Whether a part of the request may have left this process.
  var isSent = false
  /// Whether the session has put the stream into its list of those that advanced.
  var isNoted = false
  /// Whether the whole response has arrived.
  private(set) var isEnded = false
  private(set) var isClosed = false
  /// Whether the library waits for more of the request's body.
  var isDeferred = false

  // The response.
  private(set) var status: Int?
  private(set) var contentLength: Int?
  private(set) var isNotOwner = false
  private(set) var isCompressible = false
  /// The fields of the head and the trailers, in lines `name: value CR LF`.
  private(set) var headLines: [UInt8] = []
  private(set) var trailerLines: [UInt8] = []
  private var isHeadComplete = false
  private var body: [UInt8] = []
  private var bodyStart = 0

  init(id: Int32, owner: any PeerStreamOwner) {
    self.id = id
    self.owner = owner
  }

  /// Whether the head of the response is complete.
  var hasHead: Bool { isHeadComplete && status != nil }

  /// The bytes of the body that arrived and were not taken.
  var heldBytes: Int { body.count - bodyStart }

  /// Moves up to `countMax` bytes of the body to `out`. Returns their number.
  func take(_ countMax: Int, into out: inout [UInt8]) -> Int {
    let count = min(countMax, heldBytes)
    out.append(contentsOf: body[bodyStart..<bodyStart + count])
    bodyStart += count
    if bodyStart == body.count {
      // A large body must not keep its memory while the stream waits.
      body.removeAll(keepingCapacity: body.capacity <= Exchange.sliceBytes)
      bodyStart = 0
    }
    return count
  }

  // MARK: - Events of the session

  /// Adds a field of the response. Returns `false` if there are too many bytes.
  func received(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    guard headLines.count + trailerLines.count + name.count + value.count < Self.fieldBytesMax else { return false }
    guard !isHeadComplete else {
      Self.append(name, value, to: &trailerLines)
      return true
    }
    if name.matches(":status") {
      status = RelayedFields.number(value)
    } else if name.matches("content-length") {
      contentLength = RelayedFields.number(value)
    } else if name.matches(RelayedFields.notOwner) {
      isNotOwner = true
    } else if name.matches(RelayedFields.compressible) {
      isCompressible = true
    } else if !RelayedFields.isOfConnection(name), !name.matches("date") {
      Self.append(name, value, to: &headLines)
    }
    return true
  }

  func headEnded() { isHeadComplete = true }

  func received(_ bytes: UnsafeRawBufferPointer) { body.append(raw: bytes) }

  func responseEnded() { isEnded = true }

  /// Ends the stream. Returns the owner that has to learn of it.
  func close() -> (any PeerStreamOwner)? {
    isClosed = true
    defer { owner = nil }
    return owner
  }

  private static func append(
    _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, to lines: inout [UInt8]
  ) {
    lines.append(raw: name)
    lines.append(": ")
    lines.append(raw: value)
    lines.append("\r\n")
  }
}
