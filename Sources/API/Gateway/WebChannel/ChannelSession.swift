/// One channel as a state machine: what it has received, what it is to say, and on which response
/// (listen-and-webchannel.md, section 3). No sockets, and the caller's clock, in milliseconds.
///
/// 1. Messages of the client go in with ``receive(_:)`` and come out of ``nextMap()`` once each, in order.
/// 2. Messages for it go in with ``append(_:)`` and out with ``takeChunk(at:to:)`` on the back channel, the one
///    hanging response; they are kept until the client says that it has them.
/// 3. ``tick(at:)`` keeps a silent back channel alive, ends polls, and ends a session that nobody asks about.
struct ChannelSession {
  /// How a back channel is served.
  enum BackChannel: Equatable, Sendable {
    /// Chunk after chunk as there is something to say.
    case streaming
    /// One chunk, after at most so many milliseconds.
    case polling(milliseconds: Int)
  }

  /// How a channel ends.
  enum Ending {
    /// The call failed: the payload, an object `{"error": …}`.
    case failure([UInt8])
    /// The call came to its end.
    case closed
    /// The server gives up the session; the client opens another.
    case stopped

    fileprivate var message: [UInt8] {
      switch self {
      case .failure(let error): error
      case .closed: Array(#""close""#.utf8)
      case .stopped: Array(#""stop""#.utf8)
      }
    }
  }

  /// What became of a chunk.
  enum Chunk: Equatable {
    /// There is nothing to say.
    case none
    /// It was appended.
    case appended
    /// It was appended, and the response ends with it.
    case last
  }

  /// What time brought.
  enum Tick: Equatable {
    /// Nothing.
    case none
    /// There may be something to say now.
    case due
    /// Nobody asked for too long: the session is over.
    case expired
  }

  /// What the handshake announces as the longest silence of a back channel, in milliseconds. Clients wait half as long
  /// again.
  static let keepAliveMilliseconds = 30_000
  /// A back channel is not silent for longer than this.
  static let silenceMilliseconds = 25_000
  /// The longest that a poll waits; a client may wish for less.
  static let pollMilliseconds = 30_000
  /// A session without a back channel lasts this long: a laptop may sleep for a moment.
  static let expiryMilliseconds = 120_000
  /// A streamed response ends with the first chunk after this long, or after so many bytes: some clients keep all of
  /// its text, and the next request says what they have. That bounds what is kept, too: a response repeats first what
  /// was not acknowledged, and no message is wanted meanwhile.
  static let responseMilliseconds = 60_000
  static let responseBytesMax = 1 << 20
  /// About how much one chunk of a stream holds; a poll takes more, as each costs a round trip.
  static let chunkBytes = 32 << 10
  static let pollBytes = 256 << 10

  private struct Response {
    let kind: BackChannel
    let begunAt: Int
    /// The last array it carries.
    var last: Int
    var lastSentAt: Int
    var sentBytes = 0
    /// It is to carry something at once: a client takes silence for a proxy that holds bytes back.
    var isFresh = true
  }

  private var maps = MapSequence()
  private var arrays = ArrayLog()
  private var response: Response?
  /// When the client was last heard of, or a response to it ended.
  private var heardAt: Int
  /// Whether the last array was added; what the client still sends is not looked at.
  private(set) var isEnded = false

  /// Begins a session, whose array 0 was the answer to the handshake.
  init(at now: Int) { heardAt = now }

  // MARK: What the client sends

  /// Takes messages of the client in.
  /// - Throws: ``ChannelFault`` beyond the bounds of ``MapSequence``.
  mutating func receive(_ received: [ChannelForm.Map], at now: Int) throws(ChannelFault) {
    heardAt = now
    guard !isEnded else { return }
    for map in received { try maps.add(map) }
  }

  /// The next message of the client, in its order.
  mutating func nextMap() -> [UInt8]? { isEnded ? nil : maps.takeNext() }

  /// Notes that the client has the arrays up to a number.
  /// - Throws: ``ChannelFault`` for an array that was never sent.
  mutating func acknowledge(_ number: Int) throws(ChannelFault) {
    guard number <= arrays.last else { throw .malformed("AID is beyond what was sent") }
    arrays.drop(through: number)
    // A response that began behind it need not repeat what the client has.
    if let last = response?.last { response?.last = max(last, arrays.first - 1) }
  }

  /// What answers a POST: whether there is a back channel, the last array, and the bytes that the client has not yet
  /// acknowledged.
  var receipt: [UInt8] {
    var text = [UInt8(ascii: "[")]
    for number in [response == nil ? 0 : 1, lastArray, arrays.keptBytes] {
      text.append(decimal: number)
      text.append(UInt8(ascii: ","))
    }
    text[text.count - 1] = UInt8(ascii: "]")
    return text
  }

  // MARK: What the client is told

  /// Whether another message is wanted now: there is a response with room for it.
  var wantsMessage: Bool {
    guard let response, !isEnded else { return false }
    return arrays.bytes(above: response.last) < (response.kind == .streaming ? Self.chunkBytes : Self.pollBytes)
  }

  /// The number of the last array.
  var lastArray: Int { arrays.last }

  /// Bytes that are held for the client, in both directions.
  var heldBytes: Int { maps.heldBytes + arrays.keptBytes }

  /// Adds a message, JSON in UTF-8.
  mutating func append(_ message: UnsafeRawBufferPointer) { arrays.append(message) }

  /// Adds the last message: no other follows, and none of the client's is taken.
  mutating func end(_ ending: Ending) {
    guard !isEnded else { return }
    isEnded = true
    maps = MapSequence()
    ending.message.withUnsafeBytes { arrays.append($0) }
  }

  // MARK: The back channel

  /// Whether the response is a poll: it ends with its first chunk.
  var isPolling: Bool { response.map { $0.kind != .streaming } ?? false }

  /// Whether there is a response to write to.
  var isAttached: Bool { response != nil }

  /// Begins a back channel with what follows an array; the one before it is no more.
  /// - Throws: ``ChannelFault`` for an array that was never sent, and where the client knows that the channel ended.
  mutating func attach(_ kind: BackChannel, above number: Int, at now: Int) throws(ChannelFault) {
    try acknowledge(number)
    if isEnded, arrays.isEmpty { throw .unknownSession }
    response = Response(kind: kind, begunAt: now, last: arrays.first - 1, lastSentAt: now)
    heardAt = now
  }

  /// The back channel is gone: it broke off, or its response is complete.
  mutating func detach(at now: Int) {
    response = nil
    heardAt = now
  }

  /// Appends the next chunk of the response. Ask when the response can take it; the response that ends with it is
  /// detached by that.
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

  // MARK: Time

  /// When ``tick(at:)`` has something to do, if nothing else happens before.
  var deadline: Int {
    guard let response else { return heardAt + Self.expiryMilliseconds }
    return switch response.kind {
    case .streaming: response.lastSentAt + Self.silenceMilliseconds
    case .polling(let milliseconds): response.begunAt + milliseconds
    }
  }

  /// Looks at the time.
  mutating func tick(at now: Int) -> Tick {
    guard now >= deadline else { return .none }
    guard let response else { return .expired }
    // Where something waits to be read, silence is the client's.
    if response.last == arrays.last { appendNoop() } else { self.response?.lastSentAt = now }
    return .due
  }

  private mutating func appendNoop() {
    StaticString(#""noop""#).withUTF8Buffer { arrays.append(UnsafeRawBufferPointer($0)) }
  }
}
