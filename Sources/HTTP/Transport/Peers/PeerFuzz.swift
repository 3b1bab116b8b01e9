/// The fuzzing entry of the client side of HTTP/2. Needs no socket. A broken invariant traps.
package enum PeerFuzz {
  /// Processes `bytes` as the frames that a peer sends in response to three requests, in pieces whose size the first byte
  /// sets. Costs a few passes over the bytes.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    guard let callbacks = PeerCallbacks(), let session = PeerSession(callbacks) else { return }
    run(bytes, session)
  }

  private static func run(_ bytes: UnsafeRawBufferPointer, _ session: PeerSession) {
    let owners = (0..<3).map { Owner(session, uploadBytes: $0 * 1000) }
    var part = RequestPart()
    part.method = .post
    part.target = Array("/fuzz".utf8)
    part.withRequest { request in
      let head = RelayedHead(request, client: RelayedClient(of: request, requestID: nil), isWhole: false)
      for owner in owners { owner.begin(head) }
    }
    var out: [UInt8] = []
    send(session, &out)
    let pieceBytes = Int(bytes.first.map { $0 % 64 } ?? 0) + 1
    var position = 1
    var sentBytes = 0
    while position < bytes.count, session.isAlive {
      let end = min(position + pieceBytes, bytes.count)
      session.receive(UnsafeRawBufferPointer(rebasing: bytes[position..<end]))
      session.deliver()
      position = end
      send(session, &out)
      sentBytes += out.count
      precondition(sentBytes < 64 * 1024 + bytes.count * 64, "the output is out of proportion to the input")
    }
    session.close()
    precondition(session.streams.isEmpty, "streams remain after the close")
    for owner in owners { precondition(owner.isDone, "a request has no outcome") }
  }

  private static func send(_ session: PeerSession, _ out: inout [UInt8]) {
    out.removeAll(keepingCapacity: true)
    session.send(into: &out, bytesMax: 64 * 1024)
    session.deliver()
  }

  /// The sender of a request, which takes what arrives.
  private final class Owner: PeerStreamOwner {
    private let session: PeerSession
    private var uploadBytes: Int
    private var stream: PeerStream?
    private var isFailed = false

    init(_ session: PeerSession, uploadBytes: Int) {
      self.session = session
      self.uploadBytes = uploadBytes
    }

    /// Whether the response is complete or failed, or the request never began.
    var isDone: Bool { isFailed || stream.map(\.isEnded) ?? true }

    func begin(_ head: RelayedHead) { stream = session.submit(head, hasBody: uploadBytes > 0, owner: self) }

    func nextUpload(into space: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
      let count = min(space.count, uploadBytes)
      for index in 0..<count { space[index] = 7 }
      uploadBytes -= count
      return (count, uploadBytes == 0)
    }

    func responseAdvanced(_ stream: PeerStream) {
      precondition(stream === self.stream && !isFailed)
      guard stream.hasHead else { return }
      var taken: [UInt8] = []
      session.widen(stream, by: stream.take(.max, into: &taken))
      precondition(stream.heldBytes == 0)
    }

    func streamFailed(_ stream: PeerStream, _ failure: PeerFailure) {
      precondition(stream === self.stream && !isFailed && !stream.isEnded)
      isFailed = true
    }
  }
}
