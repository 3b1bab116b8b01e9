/// The state machine of one channel: the messages received, the messages to send, and the response to send them on
/// (listen-and-webchannel.md, section 3). It uses no sockets, and the caller passes the time in milliseconds.
///
/// 1. Messages of the client enter with ``receive(_:at:)``. ``nextMap()`` returns each of them once, in order.
/// 2. Messages to the client enter with ``append(_:)``. ``takeChunk(at:to:)`` returns them for the back channel,
///    and the session keeps them until the client acknowledges them.
/// 3. ``tick(at:)`` keeps a silent back channel alive, ends polls, and ends a session without a client.
struct ChannelSession {
  /// The kinds of back channels.
  enum BackChannel: Equatable, Sendable {
    /// Sends a chunk whenever messages are available.
    case streaming
    /// Sends one chunk, after at most the given time.
    case polling(milliseconds: Int)
  }

  /// The reasons why a channel ends.
  enum Ending {
    /// The stream failed. The payload is an object `{"error": …}`.
    case failure([UInt8])
    /// The stream ended normally.
    case closed
    /// The server ends the session, and the client opens another.
    case stopped

    fileprivate var message: [UInt8] {
      switch self {
      case .failure(let error): error
      case .closed: Array(#""close""#.utf8)
      case .stopped: Array(#""stop""#.utf8)
      }
    }
  }

  /// The result of ``takeChunk(at:to:)``.
  enum Chunk: Equatable {
    /// No message is available.
    case none
    /// A chunk was appended.
    case appended
    /// A chunk was appended, and the response ends after it.
    case last
  }

  /// The result of ``tick(at:)``.
  enum Tick: Equatable {
    /// No deadline has passed.
    case none
    /// A message may be available now.
    case due
    /// The client was silent for too long: the session is over.
    case expired
  }

  /// The longest silence of a back channel that the handshake announces, in milliseconds. Clients wait 1.5 times as
  /// long.
  static let keepAliveMilliseconds = 30_000
  /// The longest actual silence of a back channel, in milliseconds.
  static let silenceMilliseconds = 25_000
  /// The longest time that a poll waits, in milliseconds. A client may request less.
  static let pollMilliseconds = 30_000
  /// The lifetime of a session without a back channel, in milliseconds. A laptop may sleep for a short time.
  static let expiryMilliseconds = 120_000
  /// A streamed response ends with the first chunk after this time, in milliseconds, or this number of bytes. Some
  /// clients keep all of a response's text, and the next request acknowledges what they have received.
  ///
  /// This also limits the arrays kept: a new response first repeats what was not acknowledged, and the stream
  /// produces no messages meanwhile.
  static let responseMilliseconds = 60_000
  static let responseBytesMax = 1 << 20
  /// The approximate size of a chunk. The one of a poll is larger, because each poll costs a round trip.
  static let chunkBytes = 32 << 10
  static let pollBytes = 256 << 10

  private struct Response {
    let kind: BackChannel
    let begunAt: Int
    /// The number of the last array sent on the response.
    var last: Int
    var lastSentAt: Int
    var sentBytes = 0
    /// Whether nothing was sent yet. The first chunk must be sent at once: a client takes silence for a buffering
    /// proxy.
    var isFresh = true
  }

  private var maps = MapSequence()
  private var arrays = ArrayLog()
  private var response: Response?
  /// The time of the last sign of the client, or of the end of a response to it.
  private var heardAt: Int
  /// Whether the last array was appended. Later messages of the client are ignored.
  private(set) var isEnded = false

  /// Begins a session. Its array 0 is the response to the handshake.
  init(at now: Int) { heardAt = now }

  // MARK: Messages of the client

  /// Adds messages of the client.
  ///
  /// - Throws: ``ChannelFault`` if they exceed the limits of ``MapSequence``.
  mutating func receive(_ received: [ChannelForm.Map], at now: Int) throws(ChannelFault) {
    heardAt = now
    guard !isEnded else { return }
    for map in received { try maps.add(map) }
  }

  /// Returns the next message of the client, in order.
  mutating func nextMap() -> [UInt8]? { isEnded ? nil : maps.takeNext() }

  /// Records that the client has received the arrays up to a number.
  ///
  /// - Throws: ``ChannelFault`` if the array was never sent.
  mutating func acknowledge(_ number: Int) throws(ChannelFault) {
    guard number <= arrays.last else { throw .malformed("AID is greater than the last array sent") }
    arrays.drop(through: number)
    // A response that has sent less must not repeat arrays that the client has.
    if let last = response?.last { response?.last = max(last, arrays.first - 1) }
  }

  /// The response to a POST: whether there is a back channel, the number of the last array, and the number of
  /// unacknowledged bytes.
  var receipt: [UInt8] {
    var text = [UInt8(ascii: "[")]
    for number in [response == nil ? 0 : 1, lastArray, arrays.keptBytes] {
      text.append(decimal: number)
      text.append(UInt8(ascii: ","))
    }
    text[text.count - 1] = UInt8(ascii: "]")
    return text
  }

  // MARK: Messages to the client

  /// Whether the session accepts another message now: it has a back channel, whose next chunk is not full.
  var wantsMessage: Bool {
    guard let response, !isEnded else { return false }
    return arrays.bytes(above: response.last) < (response.kind == .streaming ? Self.chunkBytes : Self.pollBytes)
  }

  /// The number of the last array.
  var lastArray: Int { arrays.last }

  /// The number of bytes buffered for the client, in both directions.
  var heldBytes: Int { maps.heldBytes + arrays.keptBytes }

  /// Appends a message in JSON, in UTF-8.
  mutating func append(_ message: UnsafeRawBufferPointer) { arrays.append(message) }

  /// Appends the last message. No messages follow, and later messages of the client are ignored.
  mutating func end(_ ending: Ending) {
    guard !isEnded else { return }
    isEnded = true
    maps = MapSequence()
    ending.message.withUnsafeBytes { arrays.append($0) }
  }

  // MARK: The back channel

  /// Whether the response is a poll: it ends with its first chunk.
  var isPolling: Bool { response.map { $0.kind != .streaming } ?? false }

  /// Whether the session has a back channel.
  var isAttached: Bool { response != nil }

  /// Begins a back channel with the arrays after a number. It replaces the one before.
  ///
  /// - Throws: ``ChannelFault`` if the array was never sent, or the client already knows that the channel has
  ///   ended.
  mutating func attach(_ kind: BackChannel, above number: Int, at now: Int) throws(ChannelFault) {
    try acknowledge(number)
    if isEnded, arrays.isEmpty { throw .unknownSession }
    response = Response(kind: kind, begunAt: now, last: arrays.first - 1, lastSentAt: now)
    heardAt = now
  }

  /// Removes the back channel, because it was disconnected or its response is complete.
  mutating func detach(at now: Int) {
    response = nil
    heardAt = now
  }

  /// Appends the next chunk of the response. Call it when the response can send a chunk. After the last chunk the
  /// response is detached.
  mutating func takeChunk(at now: Int, to out: inout [UInt8]) -> Chunk {
    guard var response else { return .none }
    let isStreaming = response.kind == .streaming
    if response.last == arrays.last, isStreaming, response.isFresh { appendNoop() }
    let before = out.count
    guard
      let last = arrays.appendChunk(
        above: response.last, bytesMax: isStreaming ? Self.chunkBytes : Self.pollBytes, to: &out)
    else { return .none }
    response.last = last
    response.isFresh = false
    response.lastSentAt = now
    response.sentBytes += out.count - before
    self.response = response
    let isOver = isEnded && last == arrays.last
    guard
      !isStreaming || isOver || response.sentBytes >= Self.responseBytesMax
        || now - response.begunAt >= Self.responseMilliseconds
    else { return .appended }
    detach(at: now)
    return .last
  }

  // MARK: Deadlines

  /// The time at which ``tick(at:)`` has work, unless another event comes first.
  var deadline: Int {
    guard let response else { return heardAt + Self.expiryMilliseconds }
    return switch response.kind {
    case .streaming: response.lastSentAt + Self.silenceMilliseconds
    case .polling(let milliseconds): response.begunAt + milliseconds
    }
  }

  /// Handles the passing of time.
  mutating func tick(at now: Int) -> Tick {
    guard now >= deadline else { return .none }
    guard let response else { return .expired }
    // If messages wait to be read, it is the client that is silent: no keep-alive is needed.
    if response.last == arrays.last { appendNoop() } else { self.response?.lastSentAt = now }
    return .due
  }

  private mutating func appendNoop() {
    StaticString(#""noop""#).withUTF8Buffer { arrays.append(UnsafeRawBufferPointer($0)) }
  }
}
