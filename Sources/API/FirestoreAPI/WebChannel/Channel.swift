import DatabaseService
import GatewayCore
import Transport
import WireFormat

/// An open channel: its session, the stream it carries, and the back channel it writes to.
///
/// Use it only on the loop that received its handshake. Requests on other loops are passed to that loop.
final class Channel {
  private let loop: EventLoop
  private var stream: any ChannelStream
  private let budget: ChannelBudget
  /// Removes the channel from the table of open channels. Runs once.
  private let forget: () -> Void
  private var session: ChannelSession
  private var back: (channel: LoopBound<BackChannel>, number: Int)?
  /// Whether the back channel waits for a chunk.
  private var isChunkRequested = false
  /// The number of pulls for the current poll. It is limited, so that a long search does not delay results found so
  /// far.
  private var pullsOfPoll = 0
  private static let pullsOfPollMax = 128
  /// Whether the channel waits for its turn on the loop.
  private var awaitsTurn = false
  /// Whether the stream was ended.
  private var isStreamOver = false
  private var isOver = false
  private var timer: (timer: LoopTimer, at: Int)?
  private var chargedBytes = 0

  /// Opens a channel. Call it on the channel's loop.
  init(
    on loop: EventLoop, budget: ChannelBudget, forget: @escaping () -> Void,
    stream: (_ wake: @escaping @Sendable () -> Void) -> any ChannelStream
  ) {
    self.loop = loop
    self.budget = budget
    self.forget = forget
    session = ChannelSession(at: loop.nowMilliseconds)
    let reference = WeakReference()
    let bound = LoopBound(reference, to: loop)
    self.stream = stream { bound.later { $0.channel?.pump() } }
    reference.channel = self
    settle()
  }

  deinit { endStream() }

  /// A reference with which the stream can wake the channel without keeping it alive.
  private final class WeakReference {
    weak var channel: Channel?
  }

  // MARK: Requests

  /// Handles a POST with messages, and responds to it.
  func receive(_ maps: [ChannelForm.Map], acknowledging number: Int?, _ responder: Responder) {
    do throws(ChannelFault) {
      guard !isOver else { throw .unknownSession }
      if let number { try session.acknowledge(number) }
      try session.receive(maps, at: loop.nowMilliseconds)
    } catch {
      return responder.onLoop { responder.sendFault(error) }
    }
    // The response only acknowledges receipt. Results are sent on the back channel.
    let receipt = session.receipt
    responder.onLoop { responder.sendChunk(receipt) }
    take()
    pump()
  }

  /// Handles the messages in the handshake.
  ///
  /// - Throws: ``ChannelFault`` if the messages exceed the limits of ``MapSequence``.
  func begin(with maps: [ChannelForm.Map]) throws(ChannelFault) {
    try session.receive(maps, at: loop.nowMilliseconds)
    take()
    settle()
  }

  /// Makes a response the back channel, and ends the one before.
  func attach(
    _ kind: ChannelSession.BackChannel, above number: Int, _ channel: LoopBound<BackChannel>, number backNumber: Int
  ) {
    do throws(ChannelFault) {
      guard !isOver else { throw .unknownSession }
      try session.attach(kind, above: number, at: loop.nowMilliseconds)
    } catch {
      return channel.onLoop { $0.refuse(error) }
    }
    back?.channel.onLoop { $0.finish() }
    back = (channel, backNumber)
    isChunkRequested = false
    channel.onLoop { $0.begin() }
    settle()
  }

  /// Notes that the back channel can send a chunk.
  func wantsChunk(_ number: Int) {
    guard number == back?.number else { return }
    isChunkRequested = true
    pump()
  }

  /// Notes that the client of a back channel has disconnected.
  func backChannelClosed(_ number: Int) {
    guard number == back?.number else { return }
    back = nil
    isChunkRequested = false
    session.detach(at: loop.nowMilliseconds)
    settle()
  }

  /// Closes the channel at the client's request, or after it has ended.
  func terminate() {
    guard !isOver else { return }
    isOver = true
    endStream()
    back?.channel.onLoop { $0.finish() }
    back = nil
    timer?.timer.cancel()
    timer = nil
    budget.change(by: -chargedBytes)
    chargedBytes = 0
    forget()
  }

  /// Stops the stream because the server stops. The client is notified after the responses to its accepted
  /// requests.
  func shutDown() {
    guard !isOver, !session.isEnded else { return }
    stream.stop(Status(.unavailable, "The server is stopping."))
    pump()
  }

  /// Ends the channel because memory is short. The client is notified if it has a back channel.
  private func stop() {
    guard !isOver else { return }
    finish(.stopped)
    pump()
    terminate()
  }

  // MARK: The stream

  /// Passes the client's messages to the stream as long as it has room. The others wait.
  private func take() {
    while stream.hasRoom, let request = session.nextMap() {
      do { try stream.receive(request) } catch { fail(error) }
    }
  }

  /// Pulls messages from the stream if the back channel can send some, and sends it a chunk.
  private func pump() {
    guard !isOver, isChunkRequested, let back else { return settle() }
    guard loop.hasTime else { return awaitTurn() }
    var isUnfinished = false
    if session.wantsMessage { isUnfinished = pull() == .more }
    // A poll ends with its first chunk, so collect all available messages for it.
    if isUnfinished, session.isPolling, session.wantsMessage, pullsOfPoll < Self.pullsOfPollMax {
      pullsOfPoll += 1
      loop.atNextTurn { self.pump() }
      return settle()
    }
    pullsOfPoll = 0
    var chunk: [UInt8] = []
    switch session.takeChunk(at: loop.nowMilliseconds, to: &chunk) {
    case .none:
      // The stream did work but found nothing yet. Let other requests run before it continues.
      if isUnfinished { loop.atNextTurn { self.pump() } }
    case .appended:
      isChunkRequested = false
      back.channel.onLoop { [chunk] in $0.send(chunk, isLast: false) }
    case .last:
      self.back = nil
      isChunkRequested = false
      back.channel.onLoop { [chunk] in $0.send(chunk, isLast: true) }
    }
    settle()
  }

  /// Continues after other work of the loop had its turn.
  private func awaitTurn() {
    settle()
    guard !awaitsTurn, !isOver else { return }
    awaitsTurn = true
    loop.atNextTurn { [weak self] in
      guard let self else { return }
      awaitsTurn = false
      pump()
    }
  }

  private func pull() -> BodyProgress {
    do {
      let progress = try stream.pull { message in
        session.append(message)
        return session.wantsMessage
      }
      if progress == .finished { finish(.closed) }
      take()
      return progress
    } catch {
      fail(error)
      return .finished
    }
  }

  private func fail(_ error: any Error) {
    let status = Status(error, database: stream.database)
    back?.channel.onLoop { $0.logFailure(of: status) }
    var json = JSONWriter(.compact)
    ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
    finish(.failure(json.bytes))
  }

  private func finish(_ ending: ChannelSession.Ending) {
    session.end(ending)
    endStream()
  }

  private func endStream() {
    guard !isStreamOver else { return }
    isStreamOver = true
    stream.end()
  }

  // MARK: Time and memory

  /// Schedules the timer for the next deadline, and updates the memory budget.
  private func settle() {
    guard !isOver else { return }
    let held = session.heldBytes
    if held != chargedBytes {
      budget.change(by: held - chargedBytes)
      chargedBytes = held
    }
    if held > ChannelBudget.shareBytes, budget.isExceeded, !session.isEnded { return stop() }
    // A timer that fires too early is scheduled again. Most deadlines only move later.
    let deadline = session.deadline
    if let timer {
      guard deadline < timer.at else { return }
      timer.timer.cancel()
    }
    let wait = max(0, deadline - loop.nowMilliseconds)
    timer = (loop.schedule(afterMilliseconds: wait) { [weak self] in self?.timerFired() }, deadline)
  }

  private func timerFired() {
    timer = nil
    switch session.tick(at: loop.nowMilliseconds) {
    case .none: settle()
    case .due: pump()
    case .expired: terminate()
    }
  }
}
