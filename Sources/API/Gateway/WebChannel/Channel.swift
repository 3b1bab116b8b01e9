import DatabaseService
import Transport
import WireFormat

/// A channel that is open: its session, the call it carries, and the response it writes to. Belongs to the loop where
/// its handshake came; requests that come on other loops are handed over.
final class Channel {
  private let loop: EventLoop
  private let call: any ChannelStream
  private let budget: ChannelBudget
  /// Forgets the channel where requests look for it. Called once.
  private let forget: () -> Void
  private var session: ChannelSession
  private var back: (channel: LoopBound<BackChannel>, number: Int)?
  /// Whether the back channel waits for a chunk.
  private var isAsked = false
  /// How often the call was asked for the answer to a poll, so that a long search does not hold up what is found.
  private var pullsOfPoll = 0
  private static let pullsOfPollMax = 128
  /// Whether the call was told to end.
  private var isCallOver = false
  private var isOver = false
  private var timer: (timer: LoopTimer, at: Int)?
  private var chargedBytes = 0

  /// Opens a channel. On its loop.
  init(
    on loop: EventLoop, budget: ChannelBudget, forget: @escaping () -> Void,
    call: (_ wake: @escaping @Sendable () -> Void) -> any ChannelStream
  ) {
    self.loop = loop
    self.budget = budget
    self.forget = forget
    session = ChannelSession(at: loop.nowMilliseconds)
    let reference = WeakReference()
    let bound = LoopBound(reference, to: loop)
    self.call = call { bound.later { $0.channel?.pump() } }
    reference.channel = self
    settle()
  }

  deinit { endCall() }

  /// Lets the call wake a channel that it does not keep alive.
  private final class WeakReference {
    weak var channel: Channel?
  }

  // MARK: Requests

  /// Takes the messages of a POST, and answers it.
  func receive(_ maps: [ChannelForm.Map], acknowledging number: Int?, _ responder: Responder) {
    do throws(ChannelFault) {
      guard !isOver else { throw .unknownSession }
      if let number { try session.acknowledge(number) }
      try session.receive(maps, at: loop.nowMilliseconds)
    } catch {
      return responder.onLoop { responder.sendFault(error) }
    }
    // Receipt is all that is acknowledged; what becomes of the messages is told on the back channel.
    let receipt = session.receipt
    responder.onLoop { responder.sendChunk(receipt) }
    take()
    pump()
  }

  /// Takes the messages that came with the handshake.
  /// - Throws: ``ChannelFault``.
  func begin(with maps: [ChannelForm.Map]) throws(ChannelFault) {
    try session.receive(maps, at: loop.nowMilliseconds)
    take()
    settle()
  }

  /// Makes a response the back channel, in place of the one before.
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
    isAsked = false
    channel.onLoop { $0.begin() }
    settle()
  }

  /// The back channel can take a chunk.
  func wantsChunk(_ number: Int) {
    guard number == back?.number else { return }
    isAsked = true
    pump()
  }

  /// The client of a back channel is gone.
  func lost(_ number: Int) {
    guard number == back?.number else { return }
    back = nil
    isAsked = false
    session.detach(at: loop.nowMilliseconds)
    settle()
  }

  /// The client wants no more.
  func terminate() {
    guard !isOver else { return }
    isOver = true
    endCall()
    back?.channel.onLoop { $0.finish() }
    back = nil
    timer?.timer.cancel()
    timer = nil
    budget.change(by: -chargedBytes)
    chargedBytes = 0
    forget()
  }

  /// The server stops: the client is told, once it has the answers to what was begun.
  func shutDown() {
    guard !isOver, !session.isEnded else { return }
    call.stop(Status(.unavailable, "The server is stopping."))
    pump()
  }

  /// There is no room: the client is told, where it listens, and the channel is over.
  private func stop() {
    guard !isOver else { return }
    finish(.stopped)
    pump()
    terminate()
  }

  // MARK: The call

  /// Hands the client's messages to the call, as far as it has room; the others wait.
  private func take() {
    while call.hasRoom, let request = session.nextMap() {
      do { try call.receive(request) } catch { fail(error) }
    }
  }

  /// Asks the call for messages where the back channel can take some, and sends it a chunk.
  private func pump() {
    guard !isOver, isAsked, let back else { return settle() }
    var isUnfinished = false
    if session.wantsMessage { isUnfinished = pull() == .more }
    // A poll ends with its first chunk, so all there is goes into it.
    if isUnfinished, session.isPolling, session.wantsMessage, pullsOfPoll < Self.pullsOfPollMax {
      pullsOfPoll += 1
      LoopBound(self, to: loop).later { $0.pump() }
      return settle()
    }
    pullsOfPoll = 0
    var chunk: [UInt8] = []
    switch session.takeChunk(at: loop.nowMilliseconds, to: &chunk) {
    case .none:
      // The call worked and has nothing yet: others come in between before it goes on.
      if isUnfinished { LoopBound(self, to: loop).later { $0.pump() } }
    case .appended:
      isAsked = false
      back.channel.onLoop { [chunk] in $0.send(chunk, isLast: false) }
    case .last:
      self.back = nil
      isAsked = false
      back.channel.onLoop { [chunk] in $0.send(chunk, isLast: true) }
    }
    settle()
  }

  private func pull() -> ChannelStreamProgress {
    do {
      let progress = try call.pull { message in
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
    let status = Status(error, database: call.database)
    back?.channel.onLoop { $0.tell(status) }
    var json = JSONWriter(.compact)
    ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
    finish(.failure(json.bytes))
  }

  private func finish(_ ending: ChannelSession.Ending) {
    session.end(ending)
    endCall()
  }

  private func endCall() {
    guard !isCallOver else { return }
    isCallOver = true
    call.end()
  }

  // MARK: Time and memory

  /// Sets the timer for what comes next, and says how much memory is held.
  private func settle() {
    guard !isOver else { return }
    let held = session.heldBytes
    if held != chargedBytes {
      budget.change(by: held - chargedBytes)
      chargedBytes = held
    }
    if held > ChannelBudget.shareBytes, budget.isExceeded, !session.isEnded { return stop() }
    // A timer that goes off too early looks again; most deadlines only move on.
    let deadline = session.deadline
    if let timer {
      guard deadline < timer.at else { return }
      timer.timer.cancel()
    }
    let wait = max(0, deadline - loop.nowMilliseconds)
    timer = (loop.schedule(afterMilliseconds: wait) { [weak self] in self?.look() }, deadline)
  }

  private func look() {
    timer = nil
    switch session.tick(at: loop.nowMilliseconds) {
    case .none: settle()
    case .due: pump()
    case .expired: terminate()
    }
  }
}
