import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import Watch
import WireFormat

/// Listeners join, lag, disconnect and resume while random commits continue. At every snapshot, the documents that
/// a listener assembled must be the result of its query at the snapshot's version.
@Suite struct ListenSimulationTests {
  @Test(arguments: 1...Seeds.count)
  func everySnapshotMatchesItsQueryAtItsVersion(_ seed: Int) throws {
    var simulation = try ListenSimulation(seed: UInt64(seed))
    do { try simulation.run(steps: 120) } catch {
      Issue.record("seed \(seed): \(error)\n\(simulation.story.suffix(40).joined(separator: "\n"))")
    }
  }

  enum Seeds {
    static let count = 40
  }
}

/// One run of the simulation.
private struct ListenSimulation {
  private let service: SimulatedService
  private var random: SplitMix
  private var generator: QueryGenerator
  private var listeners: [Listener] = []
  /// The steps so far, for failure messages.
  private(set) var story: [String] = []

  /// A listener with its targets, and the resume tokens of its removed targets.
  private final class Listener {
    let client: ListeningClient
    let name: Int
    var selections: [Int32: ListenTarget.Selection] = [:]
    /// The removed targets, with the token and the documents at the last snapshot.
    var left: [(selection: ListenTarget.Selection, token: [UInt8], documents: [ResourcePath: Int64])] = []

    init(_ client: ListeningClient, name: Int) {
      self.client = client
      self.name = name
    }
  }

  init(seed: UInt64) throws {
    service = try SimulatedService(usesLog: seed.isMultiple(of: 2))
    random = SplitMix(seed: seed)
    generator = QueryGenerator(seed: seed &* 31)
    for (key, fields) in generator.documents().prefix(25) {
      try commit([Write(.update(EncodedFields(fields), mask: nil), key: DocumentKey(uncheckedPath: key))])
    }
  }

  mutating func run(steps: Int) throws {
    for _ in 0..<steps {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<9: try change()
      case 9, 10: if listeners.count < 5 { try join() }
      case 11, 12: try addTarget()
      case 13: try removeTarget()
      case 14: try breakOff()
      case 15: try burst()
      case 16: for hub in service.service.hubs.all { hub.beat() }
      case 17:
        if random.chance(oneIn: 12) {
          story.append("clear")
          try wait { done in try service.service.clear(service.id) { done($0) } }.get()
        } else if random.chance(oneIn: 8) {
          story.append("trim")
          service.time.advance(seconds: 3700)
          try service.trim()
        }
      default:
        if let listener = listeners.randomElement(using: &random) {
          let count = Int.random(in: 1...10, using: &random)
          story.append("\(listener.name) takes \(count)")
          try listener.client.pull(eventsMax: count)
        }
      }
      if random.chance(oneIn: 3) { service.settleWatchHubs() }
    }
    for listener in listeners {
      try listener.client.settle()
      for id in listener.selections.keys where listener.client.causes[id] == nil {
        guard listener.client.states[id]?.isCurrent == true else {
          throw Difference("\(listener.name): target \(id) did not become current: \(listener.client.events)")
        }
      }
      try Self.check(listener, service, try service.lastVersion())
    }
  }

  // MARK: Commits

  private func commit(_ writes: [Write]) throws { try service.commit(writes) }

  private mutating func change() throws {
    let documents = generator.documents()
    var writes: [Write] = []
    for _ in 0...Int.random(in: 0..<4, using: &random) {
      guard let (path, fields) = documents.randomElement(using: &random) else { return }
      guard !writes.contains(where: { $0.key.path == path }) else { continue }
      let key = DocumentKey(uncheckedPath: path)
      writes.append(
        random.chance(oneIn: 3) ? Write(.delete, key: key) : Write(.update(EncodedFields(fields), mask: nil), key: key))
    }
    service.time.now += 7
    try commit(writes)
    story.append(
      "commit \(writes.map { ($0.operation == .delete ? "-" : "") + $0.key.path.text }) = \(try service.lastVersion())")
  }

  /// Makes so many commits that mailboxes overflow.
  private mutating func burst() throws {
    guard random.chance(oneIn: 4) else { return }
    story.append("burst")
    for _ in 0..<530 {
      try commit([.set("c/x", ("a", .integer(Int64(random.next() % 5))), ("n", .integer(Int64(random.next() >> 1))))])
      service.settleWatchHubs()
    }
  }

  // MARK: Listeners

  private mutating func join() throws {
    let listener = Listener(try ListeningClient(service), name: story.count)
    listener.client.onSnapshot = { [service, unowned listener] client in
      guard let version = client.snapshot?.version else { return }
      try Self.check(listener, service, version)
    }
    listeners.append(listener)
    story.append("\(listener.name) joins")
  }

  private mutating func addTarget() throws {
    guard let listener = listeners.randomElement(using: &random) else { return }
    let id = Int32(story.count + 1)
    if random.chance(oneIn: 3), let old = listener.left.randomElement(using: &random) {
      story.append("\(listener.name) resumes \(id): \(old.selection)")
      listener.selections[id] = old.selection
      listener.client.expect(old.documents, of: id)
      return try listener.client.add(id, old.selection, from: old.token)
    }
    let selection = selection()
    listener.selections[id] = selection
    story.append("\(listener.name) adds \(id): \(selection)")
    try listener.client.add(id, selection)
  }

  private mutating func selection() -> ListenTarget.Selection {
    if random.chance(oneIn: 5) {
      return .documents(
        (0...Int.random(in: 0..<3, using: &random)).map { _ in
          document(random.pick(["c/x", "c/y", "c/1", "c/x/s/x", "c/gone"])).path
        })
    }
    var query = generator.query()
    if random.chance(oneIn: 2) { query.limit = Int.random(in: 0...6, using: &random) }
    if random.chance(oneIn: 5) { query.offset = Int.random(in: 0...3, using: &random) }
    return .query(query)
  }

  private mutating func removeTarget() throws {
    guard let listener = listeners.randomElement(using: &random),
      let id = listener.selections.keys.sorted().randomElement(using: &random)
    else { return }
    story.append("\(listener.name) removes \(id)")
    // A target can be resumed only from a snapshot, so read up to one first.
    try listener.client.settle()
    keep(id, of: listener)
    listener.selections[id] = nil
    try listener.client.remove(id)
  }

  private func keep(_ id: Int32, of listener: Listener) {
    guard let selection = listener.selections[id], let state = listener.client.states[id], state.isCurrent,
      let token = listener.client.snapshot?.token
    else { return }
    listener.left.append((selection, token, state.documents))
  }

  /// Disconnects a listener at any point of its stream. Another one resumes from the last snapshot.
  private mutating func breakOff() throws {
    guard let listener = listeners.randomElement(using: &random) else { return }
    story.append("\(listener.name) breaks off")
    listener.client.stream.end()
    listeners.removeAll { $0 === listener }
    guard let known = listener.client.atSnapshot, let token = listener.client.snapshot?.token else { return }
    try join()
    guard let next = listeners.last else { return }
    for (id, state) in known.sorted(by: { $0.key < $1.key }) where state.isCurrent {
      guard let selection = listener.selections[id] else { continue }
      next.selections[id] = selection
      next.client.expect(state.documents, of: id)
      story.append("\(next.name) resumes \(id): \(selection)")
      try next.client.add(id, selection, from: token)
    }
  }

  // MARK: The expected result

  private static func check(_ listener: Listener, _ service: SimulatedService, _ version: Int64) throws {
    for (id, state) in listener.client.states where state.isCurrent {
      guard let selection = listener.selections[id] else { continue }
      let moment = ConsistencySelector.readTime(Timestamp(uncheckedMicroseconds: version))
      var expected: [ResourcePath: Int64] = [:]
      do {
        switch selection {
        case .documents(let paths):
          for path in paths {
            let version = try service.updateTime(of: DocumentKey(uncheckedPath: path), moment)
            if version != 0 { expected[path] = version }
          }
        case .query(let query), .pipeline(let query, provable: _):
          for row in try service.results(of: query, moment) { expected[row.path] = row.update }
        }
      } catch {
        // The history was trimmed meanwhile, or the version is from before a clearing.
        let code = Status(error, database: nil).code
        guard code == .failedPrecondition || code == .invalidArgument else { throw error }
        continue
      }
      guard state.documents == expected else {
        throw Difference(
          "\(listener.name): target \(id) at \(version): \(selection)\n  has \(text(state.documents))\n  not \(text(expected))\n"
            + listener.client.events.suffix(30).joined(separator: "\n"))
      }
    }
  }

  private static func text(_ documents: [ResourcePath: Int64]) -> String {
    documents.sorted { $0.key < $1.key }.map { "\($0.key)@\($0.value)" }.joined(separator: " ")
  }
}
