import CNGHTTP2

/// The state of a response while it is sent.
struct HTTP2Response {
  /// The bytes from `start` on are produced but not sent.
  var pending: [UInt8] = []
  var start = 0
  /// Produces more bytes when the client takes some.
  var source: (any BodySource)?
  /// Whether the source has nothing to send now.
  var isWaiting = false
  /// Whether nghttp2 asks for no frame until `resume`.
  var isDeferred = false
  var isBegun = false
  /// Whether the source may not be asked before the client has taken other responses.
  var awaitsRoom = false
  /// The bytes that count toward the unsent bytes of the connection.
  var countedBytes = 0
  /// The fields after the body.
  var trailers: [UInt8]?

  var unsentBytes: Int { pending.count - start }
  /// All bytes that were produced but not sent.
  var heldBytes: Int { unsentBytes + (source?.heldBytes ?? 0) }
}

extension HTTP2Stream {
  /// Output memory kept for the next response.
  private static let bytesKept = 64 * 1024

  private var server: LoopServer { multiplexer.server }

  /// Whether the response waits for the client: there are bytes to send, or a source to ask.
  var isBlocked: Bool {
    reply.isBegun && (reply.unsentBytes > 0 || (reply.source != nil && !reply.isDeferred && !reply.awaitsRoom))
  }

  // MARK: - Requests of the exchange

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) throws -> Void
  ) rethrows {
    try respond(status: status, headers: headers, compressible: compressible, body: body, trailers: nil)
  }

  func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, body: (inout [UInt8]) throws -> Void,
    trailers: (inout HeaderWriter) -> Void
  ) rethrows {
    var writer = HeaderWriter(bytes: [])
    trailers(&writer)
    try respond(status: status, headers: headers, compressible: false, body: body, trailers: writer.bytes)
  }

  func stream(
    status: Int, headers: (inout HeaderWriter) -> Void, contentLength: Int?, from source: any BodySource
  ) {
    server.responseFields.beginHead(status: status)
    server.responseFields.add(headers)
    if let contentLength { server.responseFields.addContentLength(contentLength) }
    if Exchange.hasBody(status) && head.method != .head {
      reply.source = source
      countUnsent()
      submit(hasBody: true)
    } else {
      exchange.complete()
      submit(hasBody: false)
      server.countRequest()
    }
  }

  func resume() {
    reply.isWaiting = false
    guard reply.isDeferred, !isClosed else {
      // The source may hold more than before, although the client takes nothing.
      if reply.source != nil, reply.heldBytes != reply.countedBytes {
        countUnsent()
        multiplexer.heldChanged()
      }
      return
    }
    reply.isDeferred = false
    progressMilliseconds = server.loop.nowMilliseconds
    multiplexer.resume(self)
  }

  private func respond(
    status: Int, headers: (inout HeaderWriter) -> Void, compressible: Bool, body: (inout [UInt8]) throws -> Void,
    trailers: [UInt8]?
  ) rethrows {
    var made = multiplexer.takeSpare()
    var isCompressed = false
    let hasBody = Exchange.hasBody(status)
    if hasBody {
      do {
        try body(&made)
      } catch {
        if made.capacity <= Self.bytesKept {
          made.removeAll(keepingCapacity: true)
          multiplexer.giveSpare(made)
        }
        throw error
      }
    }
    let mayCompress = compressible && head.acceptsGzip && head.method != .head
    // The node that faces the client compresses instead of this one.
    let isLeft =
      mayCompress && server.isOfPeers && made.count >= GzipCompressor.bodyBytesMin
      && made.count <= RelayedFields.compressibleBytesMax
    if mayCompress && !isLeft && made.count >= GzipCompressor.bodyBytesMin,
      let compressed = server.compressor.compress(made)
    {
      made = compressed
      isCompressed = true
    }
    let fields = server.responseFields
    fields.beginHead(status: status)
    fields.add(headers)
    if isCompressed {
      fields.add {
        $0.add("content-encoding", "gzip")
        $0.add("vary", "Accept-Encoding")
      }
    }
    if isLeft { fields.add { $0.add(RelayedFields.compressible, "1") } }
    // With trailers, the length is omitted. Without a body, the head ends the stream.
    if trailers == nil && hasBody && !made.isEmpty { fields.addContentLength(made.count) }
    if head.method == .head { made.removeAll(keepingCapacity: true) }
    reply.pending = made
    reply.trailers = trailers
    countUnsent()
    submit(hasBody: !made.isEmpty || trailers != nil)
    server.countRequest()
  }

  private func submit(hasBody: Bool) {
    reply.isBegun = true
    progressMilliseconds = server.loop.nowMilliseconds
    multiplexer.submit(server.responseFields, for: self, hasBody: hasBody)
  }

  // MARK: - Requests of nghttp2

  /// Returns the number of body bytes for the next frame. Sets `flags` if it is the last one.
  func nextFrame(bytesMax: Int, flags: inout UInt32) -> Int {
    // The stream was reset, which nghttp2 does not know yet.
    if isClosed { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
    if reply.awaitsRoom {
      reply.awaitsRoom = false
      progressMilliseconds = server.loop.nowMilliseconds
    }
    var wasAsked = false
    while reply.unsentBytes == 0, let source = reply.source {
      // The source made progress but has no bytes yet. Let other streams run first.
      if reply.isWaiting || wasAsked { return pause() }
      if multiplexer.isFull && source.heldBytes == 0 { return awaitRoom() }
      wasAsked = true
      guard pull(from: source) else {
        // nghttp2 resets the stream.
        return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
      }
    }
    let count = min(bytesMax, reply.unsentBytes)
    flags |= UInt32(NGHTTP2_DATA_FLAG_NO_COPY.rawValue)
    if count == reply.unsentBytes && reply.source == nil {
      flags |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
      if let trailers = reply.trailers {
        flags |= UInt32(NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue)
        server.responseFields.beginTrailers()
        server.responseFields.add { $0.bytes.append(contentsOf: trailers) }
        multiplexer.submitTrailers(server.responseFields, for: self)
      }
    }
    return count
  }

  /// Appends the bytes that `nextFrame` announced.
  func append(_ count: Int, to out: inout [UInt8]) {
    out.append(contentsOf: reply.pending[reply.start..<(reply.start + count)])
    reply.start += count
    countUnsent()
    progressMilliseconds = server.loop.nowMilliseconds
    if reply.unsentBytes == 0 { clearPending() }
  }

  /// Discards the unsent part of the response.
  func forgetResponse() {
    reply.source = nil
    reply.trailers = nil
    clearPending()
    countUnsent()
  }

  /// Asks the source for a slice. Returns `false` if the source failed.
  private func pull(from source: any BodySource) -> Bool {
    var slice: [UInt8] = []
    swap(&slice, &reply.pending)
    // Set this before the call, so that a source that resumes itself during the call is asked again.
    reply.isWaiting = true
    let progress = source.nextSlice(into: &slice)
    guard !isClosed else { return false }
    reply.pending = slice
    reply.start = 0
    countUnsent()
    switch progress {
    case .more:
      reply.isWaiting = false
    case .waiting:
      break
    case .finished:
      reply.isWaiting = false
      reply.source = nil
      var writer = HeaderWriter(bytes: [])
      source.addTrailers(to: &writer)
      if !writer.bytes.isEmpty { reply.trailers = writer.bytes }
      exchange.complete()
      server.countRequest()
    case .failed:
      return false
    }
    return true
  }

  /// Tells nghttp2 to skip the stream until `resume`.
  private func pause() -> Int {
    reply.isDeferred = true
    // The source has more, but produced no bytes. Ask it again after other streams had a turn.
    if !reply.isWaiting { server.loop.atNextTurn { [exchange] in exchange.resume() } }
    return Int(NGHTTP2_ERR_DEFERRED.rawValue)
  }

  /// Tells nghttp2 to skip the stream until the client has taken enough of other responses.
  private func awaitRoom() -> Int {
    reply.awaitsRoom = true
    multiplexer.awaitRoom(self)
    return Int(NGHTTP2_ERR_DEFERRED.rawValue)
  }

  private func countUnsent() {
    let bytes = reply.heldBytes
    multiplexer.unsentBytes += bytes - reply.countedBytes
    reply.countedBytes = bytes
  }

  private func clearPending() {
    var memory: [UInt8] = []
    swap(&memory, &reply.pending)
    reply.start = 0
    guard memory.capacity <= Self.bytesKept else { return }
    memory.removeAll(keepingCapacity: true)
    if reply.source == nil { multiplexer.giveSpare(memory) } else { reply.pending = memory }
  }
}
