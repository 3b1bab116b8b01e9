/// Finds the anomalies of a history: states that clients could not have seen if the transactions had run one after the
/// other, in an order that agrees with real time.
///
/// The checker does not search for such an order. It derives the dependencies that the lists prove, and reports the
/// cycles among them. A history without a report may still be wrong where no client looked.
///
/// Cost: about linear in the number of elements read.
package struct HistoryChecker {
  private typealias Transaction = AppendHistory.Transaction

  /// A read of the state before the transaction's own appends.
  private struct Read {
    let transaction: Int
    let key: String
    let list: [Int]
  }

  private struct Element: Hashable {
    let key: String
    let element: Int
  }

  private let transactions: [Transaction]
  private var writers: [Element: Int] = [:]
  private var reads: [Read] = []
  /// The longest list of each key that a client saw.
  private var orders: [String: [Int]] = [:]
  /// The transactions that happened: those that were acknowledged, and those whose appends a client saw.
  private var happened: Set<Int> = []
  private var found: [HistoryAnomaly] = []

  /// The most anomalies of one kind that are reported.
  private static let anomaliesPerKindMax = 5

  /// Returns the anomalies of a history, at most five of each kind. Empty if the history shows none.
  package static func anomalies(of history: AppendHistory) -> [HistoryAnomaly] {
    var checker = HistoryChecker(history)
    checker.check()
    return checker.found
  }

  private init(_ history: AppendHistory) { transactions = history.transactions }

  private mutating func check() {
    for (index, transaction) in transactions.enumerated() {
      for case .append(let key, let element) in transaction.operations {
        let first = writers.updateValue(index, forKey: Element(key: key, element: element))
        precondition(first == nil, "the test appended \(element) to \(key) twice")
      }
    }
    for index in transactions.indices where transactions[index].outcome == .committed { collectReads(index) }
    findOrders()
    findHappened()
    checkElements()
    checkLostAppends()
    checkLostUpdates()
    checkVersions()
    checkCycles()
  }

  private mutating func report(_ kind: HistoryAnomaly.Kind, _ text: String, _ shown: [Int]) {
    guard found.count(where: { $0.kind == kind }) < Self.anomaliesPerKindMax else { return }
    found.append(
      HistoryAnomaly(kind: kind, detail: text + shown.map { "\n  \($0): \(transactions[$0])" }.joined()))
  }

  // MARK: - Reads

  /// Collects the reads of a transaction, without what it appended itself.
  private mutating func collectReads(_ index: Int) {
    var seen: [String: [Int]] = [:]
    var own: [String: [Int]] = [:]
    for operation in transactions[index].operations {
      switch operation {
      case .append(let key, let element): own[key, default: []].append(element)
      case .read(let key, let list):
        let appended = own[key] ?? []
        guard list.suffix(appended.count).elementsEqual(appended) else {
          report(.internalInconsistency, "a transaction does not see its own appends to \(key)", [index])
          continue
        }
        let before = Array(list.dropLast(appended.count))
        if let first = seen[key], first != before {
          report(.internalInconsistency, "two reads of \(key) in one transaction differ", [index])
          continue
        }
        seen[key] = before
      }
    }
    for (key, list) in seen.sorted(by: { $0.key < $1.key }) {
      reads.append(Read(transaction: index, key: key, list: list))
    }
  }

  private mutating func findOrders() {
    for read in reads where read.list.count > orders[read.key]?.count ?? 0 { orders[read.key] = read.list }
    reads = reads.filter { read in
      if orders[read.key]?.starts(with: read.list) ?? true { return true }
      let other = reads.first { $0.key == read.key && $0.list == orders[read.key] }
      report(
        .incompatibleOrder, "two reads of \(read.key) contradict each other",
        [read.transaction] + (other.map { [$0.transaction] } ?? []))
      return false
    }
  }

  private mutating func findHappened() {
    happened = Set(transactions.indices.filter { transactions[$0].outcome == .committed })
    for (key, list) in orders {
      for element in list {
        if let writer = writers[Element(key: key, element: element)] { happened.insert(writer) }
      }
    }
  }

  private mutating func checkElements() {
    for (key, list) in orders.sorted(by: { $0.key < $1.key }) {
      var seen: Set<Int> = []
      for element in list {
        let reader = reads.first { $0.key == key && $0.list.contains(element) }?.transaction
        if !seen.insert(element).inserted {
          report(.doubledElement, "\(key) contains \(element) twice", reader.map { [$0] } ?? [])
        }
        guard let writer = writers[Element(key: key, element: element)] else {
          report(.inventedElement, "\(key) contains \(element), which no client appended", reader.map { [$0] } ?? [])
          continue
        }
        if transactions[writer].outcome == .aborted {
          report(
            .abortedRead, "\(key) contains \(element) of a refused transaction", [writer] + (reader.map { [$0] } ?? []))
        }
      }
    }
    for read in reads {
      guard let last = read.list.last, let writer = writers[Element(key: read.key, element: last)] else { continue }
      let appended = transactions[writer].operations.compactMap { step -> Int? in
        if case .append(read.key, let element) = step { element } else { nil }
      }
      if writer != read.transaction, appended.last != last {
        report(.intermediateRead, "a read of \(read.key) ends within a transaction", [writer, read.transaction])
      }
    }
  }

  /// The appends that no client saw, of transactions that happened, by their key.
  private var unseenAppends: [String: [(element: Int, writer: Int)]] {
    let seen = orders.mapValues(Set.init)
    var unseen: [String: [(element: Int, writer: Int)]] = [:]
    for index in happened.sorted() {
      for case .append(let key, let element) in transactions[index].operations
      where seen[key]?.contains(element) != true {
        unseen[key, default: []].append((element, index))
      }
    }
    return unseen
  }

  private mutating func checkLostAppends() {
    let readsByKey = Dictionary(grouping: reads, by: \.key)
    for (key, appends) in unseenAppends.sorted(by: { $0.key < $1.key }) {
      for (element, writer) in appends where transactions[writer].outcome == .committed {
        guard
          let read = readsByKey[key]?.first(where: {
            $0.transaction != writer && transactions[$0.transaction].began > transactions[writer].ended
          })
        else { continue }
        report(.lostAppend, "\(element) is missing in a later read of \(key)", [writer, read.transaction])
      }
    }
  }

  private mutating func checkLostUpdates() {
    var first: [String: [Int: Int]] = [:]
    for read in reads {
      let appends = transactions[read.transaction].operations.contains {
        if case .append(read.key, _) = $0 { true } else { false }
      }
      guard appends else { continue }
      if let other = first[read.key]?[read.list.count] {
        report(.lostUpdate, "two transactions replaced the same state of \(read.key)", [other, read.transaction])
      } else {
        first[read.key, default: [:]][read.list.count] = read.transaction
      }
    }
  }

  /// The transactions whose append directly follows the list that a transaction read.
  private func writersAfter(_ read: Read, _ unseen: [String: [(element: Int, writer: Int)]]) -> [Int] {
    let order = orders[read.key] ?? []
    if read.list.count == order.count { return (unseen[read.key] ?? []).map(\.writer) }
    return [writers[Element(key: read.key, element: order[read.list.count])]].compactMap { $0 }
  }

  // MARK: - Versions

  /// Checks that commit times increase along each list, and that each read shows exactly the commits before its time.
  private mutating func checkVersions() {
    for (key, list) in orders.sorted(by: { $0.key < $1.key }) {
      var last: (writer: Int, version: Int64)?
      for element in list {
        guard let writer = writers[Element(key: key, element: element)], let version = transactions[writer].version
        else { continue }
        if let last, last.writer != writer, last.version >= version {
          report(.versionMismatch, "commit times do not increase along \(key)", [last.writer, writer])
        }
        last = (writer, version)
      }
    }
    let unseen = unseenAppends
    for read in reads {
      guard let version = transactions[read.transaction].version else { continue }
      if let last = read.list.last.flatMap({ writers[Element(key: read.key, element: $0)] }),
        let written = transactions[last].version, written > version
      {
        report(.versionMismatch, "a read of \(read.key) contains a later commit", [last, read.transaction])
      }
      for writer in writersAfter(read, unseen) where writer != read.transaction {
        if let written = transactions[writer].version, written <= version {
          report(.versionMismatch, "a read of \(read.key) lacks an earlier commit", [writer, read.transaction])
        }
      }
    }
  }

  // MARK: - Cycles

  private mutating func checkCycles() {
    var graph = dependencies()
    let nodes = graph.edges.indices
    for component in graph.components(by: .writes) {
      if let cycle = graph.path(from: component[0], to: component[0], by: .writes, in: Set(component)) {
        reportCycle(.writeCycle, cycle)
      }
    }
    for component in graph.components(by: .dependencies) {
      let members = Set(component)
      if let cycle = graph.cycle(through: .reads, backBy: .dependencies, in: members) {
        reportCycle(.informationCycle, cycle)
      }
    }
    for component in graph.components(by: .data) {
      let members = Set(component)
      if let cycle = graph.cycle(through: .antiDependencies, backBy: .dependencies, in: members) {
        reportCycle(.singleAntiDependency, cycle)
      } else if let cycle = graph.cycle(through: .antiDependencies, backBy: .data, in: members) {
        reportCycle(.antiDependencyCycle, cycle)
      }
    }
    addRealTime(to: &graph)
    for component in graph.components(by: .all) {
      guard let moment = component.first(where: { !nodes.contains($0) }) else { continue }
      if let cycle = graph.path(from: moment, to: moment, by: .all, in: Set(component)) {
        reportCycle(.realTimeViolation, cycle)
      }
    }
  }

  private mutating func reportCycle(_ kind: HistoryAnomaly.Kind, _ cycle: [(source: Int, edge: TransactionGraph.Edge)])
  {
    let steps = cycle.map(\.edge.reason).filter { !$0.isEmpty }.joined(separator: "; ")
    report(kind, steps, cycle.map(\.source).filter { $0 < transactions.count })
  }

  /// The dependencies that the lists prove.
  private func dependencies() -> TransactionGraph {
    var graph = TransactionGraph(nodeCount: transactions.count)
    let unseen = unseenAppends
    for (key, list) in orders {
      let order = list.compactMap { writers[Element(key: key, element: $0)] }.filter(happened.contains)
      for (earlier, later) in zip(order, order.dropFirst()) {
        graph.add(earlier, later, .writes, "\(later) appended to \(key) after \(earlier)")
      }
      guard let last = order.last else { continue }
      // Lists only grow, so appends that no client saw follow those that clients saw.
      for (_, writer) in unseen[key] ?? [] {
        graph.add(last, writer, .writes, "\(writer) appended to \(key) after \(last)")
      }
    }
    for read in reads {
      let reader = read.transaction
      if let writer = read.list.last.flatMap({ writers[Element(key: read.key, element: $0)] }) {
        graph.add(writer, reader, .reads, "\(reader) read \(read.key) of \(writer)")
      }
      for writer in writersAfter(read, unseen) {
        graph.add(reader, writer, .antiDependencies, "\(reader) read \(read.key) before \(writer)")
      }
    }
    return graph
  }

  /// Adds the order in real time. A chain of moments keeps the number of edges linear.
  private func addRealTime(to graph: inout TransactionGraph) {
    enum Event { case end(Int), begin(Int) }
    var events: [(time: Int64, event: Event)] = []
    for index in happened {
      events.append((transactions[index].began, .begin(index)))
      if transactions[index].outcome == .committed { events.append((transactions[index].ended, .end(index))) }
    }
    // At equal times nothing ended before the other began.
    events.sort { first, second in
      if first.time != second.time { return first.time < second.time }
      if case .begin = first.event, case .end = second.event { return true }
      return false
    }
    var moment: Int?
    for (_, event) in events {
      switch event {
      case .end(let index):
        let next = graph.addNode()
        if let moment { graph.add(moment, next, .realTime, "") }
        graph.add(index, next, .realTime, "\(index) ended")
        moment = next
      case .begin(let index):
        if let moment { graph.add(moment, index, .realTime, "\(index) began after that") }
      }
    }
  }
}

extension TransactionGraph {
  /// Returns a cycle of an edge of one kind and a shortest way back from its target to its source, or `nil` if none
  /// exists. Cost: that of a search for each such edge, until one is found.
  fileprivate func cycle(
    through kind: Edges, backBy kinds: Edges, in members: Set<Int>
  ) -> [(source: Int, edge: Edge)]? {
    for source in members.sorted() {
      for edge in edges[source] where edge.kind == kind && members.contains(edge.target) {
        if let back = path(from: edge.target, to: source, by: kinds, in: members) { return [(source, edge)] + back }
      }
    }
    return nil
  }
}
