import Dispatch
import DocumentStore
import LogEngine
import Replication
import SharedLog
import Synchronization
import Transport

/// Follows the log of the owner over a stream (``LogStreamHandler``), and waits for what the owner has acknowledged.
///
/// While there is no stream, the node applies what it finds in the tables, and is never known to be up to date.
final class LogFollower: ReadGate {
  private typealias Waiter = FreshnessWaiter

  private struct State {
    /// The address of the owner, if it is another node.
    var address: NodeAddress?
    var stream: NodeStream?
    /// Counts the streams, so that the end of an earlier one has no effect.
    var streams = 0
    var reader = EntryMessageReader()
    /// The question without an answer, and its waiters.
    var asked: (number: UInt64, waiters: [Waiter])?
    /// The waiters of the next question.
    var next: [Waiter] = []
    var lastNumber: UInt64 = 0
    /// The waiters for a configuration, by its version.
    var unconfigured: [(version: Int64, waiters: [Waiter])] = []
    /// The configuration that is in force here.
    var configuration: Int64 = -1
    /// The last announcement of the owner on the stream: the version of its configuration, or ``EntryFeed/ownerOnly``.
    var announced: Int64 = -1
    /// The waiters for entries that are not applied yet.
    var lagging: [(index: ReadIndex, waiter: Waiter)] = []
    /// All waiters that may not be answered yet, in the order of their deadlines.
    var unanswered: [Waiter] = []
    /// Whether ``sweep()`` is scheduled.
    var isSweeping = false
    /// The tries to connect since the replica last had what an answer asked for, or a stream lasted.
    var tries = 0
    /// The time at which the stream was begun, in microseconds of `BootTime`.
    var begun: Int64 = 0
    /// The streams that ended since one brought something.
    var failures = 0
    var way = Way.unknown
    /// Whether this node closes the stream itself, although the owner is reached.
    var isClosing = false
    var isStopped = false
  }

  private let member: ClusterMember
  private let client: NodeClient
  private let state = Mutex(State())
  private let configure: @Sendable () -> Void
  private let queue = DispatchQueue(label: "hearth.cluster.follower")

  /// The time for which a request waits before it is passed to the owner, in microseconds.
  private static let patience: Int64 = 3_000_000
  /// The same for the entries before an answer that a loop got. Its next question waits for them, so a request may wait twice.
  private static let patienceForEntries: Int64 = 1_500_000
  /// The time between two looks at the deadlines, in milliseconds.
  private static let sweepMilliseconds = 500
  /// The pause before the first and between later tries to connect, in milliseconds.
  private static let connectMilliseconds = 25
  private static let connectMillisecondsMax = 1000

  /// Creates a follower without an owner.
  ///
  /// - Parameters:
  ///   - configure: is called when ``announced`` has changed, and when a request waits for a configuration. It leads to
  ///     ``setConfiguration(_:)``, ``withdrawConfiguration()`` or ``refuseUnconfigured()``.
  init(_ member: ClusterMember, _ client: NodeClient, configure: @escaping @Sendable () -> Void) {
    self.member = member
    self.client = client
    self.configure = configure
  }

  /// Follows the node at an address, or none. With `nil`, no configuration is in force here any more.
  func follow(_ address: NodeAddress?) {
    let isNew = state.withLock { state in
      if address == nil { state.configuration = -1 }
      guard state.address != address, !state.isStopped else { return false }
      state.address = address
      (state.tries, state.failures, state.way) = (0, 0, .unknown)
      return true
    }
    guard isNew else { return }
    drop()
    connect()
  }

  /// Ends the stream. Nothing is followed later.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      state.address = nil
    }
    drop()
    client.stop()
  }

  /// The last announcement of the owner: the version of the configuration that is in force there, ``EntryFeed/ownerOnly`` if this
  /// node may not read documents, or -1 before an announcement.
  var announced: Int64 { state.withLock { $0.announced } }

  /// Notes that a configuration is in force here. Its waiters continue.
  func setConfiguration(_ version: Int64) {
    let waiters = state.withLock { state in
      state.configuration = version
      let ready = state.unconfigured.filter { $0.version <= version }
      state.unconfigured.removeAll { $0.version <= version }
      return ready.flatMap(\.waiters)
    }
    for waiter in waiters { waiter.answer(true) }
  }

  /// Notes that no configuration is in force here any more. The waiters for one are refused.
  func withdrawConfiguration() {
    state.withLock { $0.configuration = -1 }
    refuseUnconfigured()
  }

  /// Notes that a newer configuration cannot be put in force now. Its waiters are refused.
  func refuseUnconfigured() {
    let waiters = state.withLock { state in
      defer { state.unconfigured = [] }
      return state.unconfigured.flatMap(\.waiters)
    }
    for waiter in waiters { waiter.answer(false) }
  }

  /// Whether this node reaches the owner, as far as it knows: not if several streams in a row brought nothing.
  var reachesOwner: Bool { state.withLock { $0.failures < Self.failuresMax } }

  /// The way to the owner.
  enum Way {
    /// No node is followed, or no stream to it has begun or ended yet.
    case unknown
    /// The last stream brought something, and did not break.
    case open
    /// The last stream broke, or could not begin.
    case broken
  }

  /// The way to the owner, as the last stream showed it.
  var way: Way { state.withLock { $0.way } }

  private static let failuresMax = 3
  /// The time after which a stream has lasted, in microseconds.
  private static let lasting: Int64 = 1_000_000

  // MARK: Questions

  func whenNewest(_ done: @escaping @Sendable (Bool) -> Void) {
    let waiter = Waiter(deadline: BootTime.now() + Self.patience, done)
    let question = state.withLock { state -> (NodeStream, UInt64)?? in
      guard let stream = state.stream else { return .none }
      state.next.append(waiter)
      state.unanswered.append(waiter)
      sweepLater(&state)
      return .some(Self.nextQuestion(&state).map { (stream, $0) })
    }
    switch question {
    case .none: waiter.answer(false)
    case .some(.none): break
    case .some(.some(let (stream, number))): Self.ask(number, stream)
    }
  }

  // MARK: Answers that the loops got

  func shows(_ index: ReadIndex) -> Bool {
    member.comparison(with: index) == .reached && state.withLock { $0.configuration >= index.configuration }
  }

  func whenShowing(_ index: ReadIndex, _ done: @escaping @Sendable (Bool) -> Void) {
    let waiter = Waiter(deadline: BootTime.now() + Self.patienceForEntries, done)
    let isTaken = state.withLock { state in
      guard state.stream != nil else { return false }
      state.lagging.append((index, waiter))
      state.unanswered.append(waiter)
      sweepLater(&state)
      return true
    }
    guard isTaken else { return waiter.answer(false) }
    // The entries may have been applied since the caller looked.
    member.afterApplying { [self] in releaseLagging() }
  }

  /// Answers the waiters whose entries are applied, and refuses those whose index cannot be compared. Each loop has at most
  /// one. On the queue that applies, so that nothing is applied meanwhile.
  private func releaseLagging() {
    let lagging = state.withLock { state in
      defer { state.lagging = [] }
      return state.lagging
    }
    for (index, waiter) in lagging {
      switch member.comparison(with: index) {
      case .reached: proceed([waiter], index.configuration)
      case .unknown: waiter.answer(false)
      case .ahead:
        let isKept = state.withLock { state in
          guard state.stream != nil else { return false }
          state.lagging.append((index, waiter))
          return true
        }
        if !isKept { waiter.answer(false) }
      }
    }
  }

  private func sweepLater(_ state: inout State) {
    guard !state.isSweeping else { return }
    state.isSweeping = true
    queue.asyncAfter(deadline: .now() + .milliseconds(Self.sweepMilliseconds)) { [weak self] in self?.sweep() }
  }

  /// Refuses the waiters whose time is over. A stream with a question that old is of no use.
  private func sweep() {
    // Entries that came by the tables wake nobody.
    member.afterApplying { [weak self] in self?.releaseLagging() }
    let now = BootTime.now()
    let (overdue, stream) = state.withLock { state -> ([Waiter], NodeStream?) in
      state.isSweeping = false
      let overdue = state.unanswered.filter { $0.deadline <= now && !$0.isAnswered }
      state.unanswered.removeAll { $0.deadline <= now || $0.isAnswered }
      state.lagging.removeAll { $0.waiter.deadline <= now }
      if !state.unanswered.isEmpty { sweepLater(&state) }
      let isStuck = state.asked.map { $0.waiters.contains { $0.deadline <= now } } ?? false
      return (overdue, isStuck ? state.stream : nil)
    }
    for waiter in overdue { waiter.answer(false) }
    stream?.close()
  }

  /// Begins the next question if it has waiters, and every earlier one is answered. Returns its number.
  private static func nextQuestion(_ state: inout State) -> UInt64? {
    guard state.asked == nil, !state.next.isEmpty else { return nil }
    state.lastNumber += 1
    state.asked = (state.lastNumber, state.next)
    state.next = []
    return state.lastNumber
  }

  private static func ask(_ number: UInt64, _ stream: NodeStream) {
    stream.send(withUnsafeBytes(of: number.littleEndian) { Array($0) })
  }

  private func answer(_ number: UInt64, sequence: UInt64, configuration: Int64) {
    let (waiters, question) = state.withLock { state -> ([Waiter], (NodeStream, UInt64)?) in
      guard let asked = state.asked, asked.number == number else { return ([], nil) }
      state.asked = nil
      guard let stream = state.stream, let next = Self.nextQuestion(&state) else { return (asked.waiters, nil) }
      return (asked.waiters, (stream, next))
    }
    if let (stream, number) = question { Self.ask(number, stream) }
    guard !waiters.isEmpty else { return }
    guard !member.shows(upTo: sequence) else { return proceed(waiters, configuration) }
    // The entries before the answer wait on the same queue.
    member.afterApplying { [self] in finish(waiters, sequence, configuration) }
  }

  private func finish(_ waiters: [Waiter], _ sequence: UInt64, _ configuration: Int64) {
    let status = member.status
    if status.applied.sequence >= sequence, !member.shows(upTo: sequence) {
      // A data file has later entries, which the log may have lost.
      for waiter in waiters { waiter.answer(false) }
      return
    }
    guard status.applied.sequence >= sequence, status.failure == nil else {
      // The replica did not take the entries before the answer. The tables decide, and the next stream begins after them.
      for waiter in waiters { waiter.answer(false) }
      state.withLock { $0.stream }?.close()
      return
    }
    proceed(waiters, configuration)
  }

  /// Answers waiters whose entries are applied, if the configuration of the owner is in force here, or else when it is.
  private func proceed(_ waiters: [Waiter], _ configuration: Int64) {
    let (isConfigured, isRefused) = state.withLock { state in
      state.tries = 0
      if configuration == EntryFeed.ownerOnly { return (false, true) }
      if state.configuration >= configuration { return (true, false) }
      guard !state.isStopped, state.stream != nil else { return (false, true) }
      state.unconfigured.append((configuration, waiters))
      return (false, false)
    }
    if isConfigured || isRefused {
      for waiter in waiters { waiter.answer(isConfigured) }
    } else {
      configure()
    }
  }

  // MARK: The stream

  private func connect() {
    let target = LogStreamHandler.target(after: member.status.applied.sequence)
    let begun = state.withLock { state -> (NodeAddress, Int)? in
      guard let address = state.address, state.stream == nil, !state.isStopped else { return nil }
      state.streams += 1
      state.reader = EntryMessageReader()
      state.announced = -1
      state.begun = BootTime.now()
      return (address, state.streams)
    }
    guard let (address, number) = begun else { return }
    let stream = client.makeStream(
      receive: { [weak self] bytes in self?.received(bytes, on: number) }, end: { [weak self] in self?.ended(number) })
    // It precedes all questions.
    stream.send(withUnsafeBytes(of: LogStreamHandler.helloNumber.littleEndian) { Array($0) })
    // Before it begins, so that no byte arrives at a stream that is not known.
    let isCurrent = state.withLock { state in
      guard state.streams == number else { return false }
      state.stream = stream
      return true
    }
    if isCurrent { client.open(stream, target, at: address) }
  }

  private func received(_ bytes: UnsafeRawBufferPointer, on number: Int) {
    var messages: [EntryMessage] = []
    let stream = state.withLock { state -> NodeStream? in
      guard state.streams == number, let stream = state.stream else { return nil }
      (state.failures, state.way) = (0, .open)
      // One that is refused at once would be tried again and again.
      if state.tries > 0, BootTime.now() - state.begun > Self.lasting { state.tries = 0 }
      state.reader.append(bytes)
      do throws(EntryMessageReader.Malformed) {
        while let message = try state.reader.next() { messages.append(message) }
      } catch { stream.close() }
      return stream
    }
    guard let stream else { return }
    var entries: [SharedEntry] = []
    var hasEntries = false
    for message in messages {
      if case .entry(let entry) = message {
        entries.append(entry)
        hasEntries = true
        continue
      }
      take(&entries)
      switch message {
      case .entry: break
      case .answer(let number, let sequence, let configuration):
        announce(configuration)
        answer(number, sequence: sequence, configuration: configuration)
      case .configuration(let version): announce(version)
      case .behind: close(stream)
      }
    }
    take(&entries)
    let count = bytes.count
    guard hasEntries else { return stream.consumed(count) }
    // The owner sends more when these are applied.
    let last = messages.reduce(0 as UInt64) { last, message in
      if case .entry(let entry) = message { max(last, entry.position.sequence) } else { last }
    }
    member.afterApplying { [self] in
      releaseLagging()
      // The replica did not take the entries. The tables decide, and the next stream begins after them.
      if !member.hasApplied(upTo: last), state.withLock({ !$0.lagging.isEmpty }) { return close(stream) }
      stream.consumed(count)
    }
  }

  /// Closes a stream that works, because it cannot continue here.
  private func close(_ stream: NodeStream) {
    state.withLock { $0.isClosing = true }
    stream.close()
  }

  private func announce(_ version: Int64) {
    let isNew = state.withLock { state in
      defer { state.announced = version }
      return state.announced != version
    }
    if isNew { configure() }
  }

  private func take(_ entries: inout [SharedEntry]) {
    guard !entries.isEmpty else { return }
    member.follow(entries)
    entries = []
  }

  private func ended(_ number: Int) {
    guard state.withLock({ $0.streams == number }) else { return }
    drop()
    let (isFirst, pause) = state.withLock { state in
      state.tries += 1
      state.failures += 1
      if !state.isClosing { state.way = .broken }
      state.isClosing = false
      return (state.tries == 1, min(Self.connectMilliseconds << min(state.tries, 10), Self.connectMillisecondsMax))
    }
    // If connecting failed, nothing is new.
    if isFirst { member.noteStreamEnded() }
    queue.asyncAfter(deadline: .now() + .milliseconds(pause)) { [weak self] in self?.connect() }
  }

  /// Forgets the stream, and refuses all waiters.
  private func drop() {
    let (stream, waiters) = state.withLock { state -> (NodeStream?, [Waiter]) in
      let waiters =
        (state.asked?.waiters ?? []) + state.next + state.unconfigured.flatMap(\.waiters)
        + state.lagging.map(\.waiter)
      defer {
        state.stream = nil
        state.streams += 1
        state.asked = nil
        state.next = []
        state.unconfigured = []
        state.lagging = []
      }
      return (state.stream, waiters)
    }
    stream?.close()
    for waiter in waiters { waiter.answer(false) }
  }
}
