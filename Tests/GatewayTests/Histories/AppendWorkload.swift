import DocumentModel
import Synchronization
import TestSupport

/// Lists that many clients read and append to: documents of the collection `lists` with an array in the field `l`, and
/// the number of appends in the field `n`. A commit that is applied twice appends its elements once, but counts twice.
///
/// New elements are unique. Clients use a few lists at a time, so that they conflict, and later others, so that the
/// lists stay short.
final class AppendWorkload: Sendable {
  static let database = "projects/p/databases/(default)"
  static let root = database + "/documents"
  static let collection = "lists"
  /// The list whose first element tells the listeners that no more follow.
  static let lastKey = "last"

  private static let listsInUse = 5
  /// The number of elements after which the next list is taken into use.
  private static let elementsPerList = 40

  private let elements = Atomic<Int>(0)
  private let start = ContinuousClock.now

  /// The time since the start, in nanoseconds.
  var now: Int64 {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// Returns a new element.
  func newElement() -> Int { elements.add(1, ordering: .relaxed).newValue }

  /// The lists that are in use now.
  var keys: [String] {
    let first = elements.load(ordering: .relaxed) / Self.elementsPerList
    return (first..<first + Self.listsInUse).map { "k\($0)" }
  }

  /// Returns `count` different lists.
  func keys(_ count: Int, _ random: inout SplitMix) -> [String] { Array(keys.shuffled(using: &random).prefix(count)) }

  /// Returns new elements for one or two lists.
  func appends(_ random: inout SplitMix) -> [(key: String, element: Int)] {
    keys(random.chance(oneIn: 3) ? 2 : 1, &random).map { ($0, newElement()) }
  }

  static func name(_ key: String) -> String { "\(root)/\(collection)/\(key)" }
  static func key(ofName name: String) -> String { String(name.split(separator: "/").last ?? "") }
}

/// A list as a client read it.
struct ListState: Sendable {
  var list: [Int]
  /// The number of appends, as the document counts them.
  var count: Int
  /// The update time of its document, or `nil` if it does not exist.
  var updated: Timestamp?

  static let missing = ListState(list: [], count: 0, updated: nil)
}

/// The server's reply to a transaction.
enum AppendReply {
  case committed(Timestamp?)
  case aborted
  case unexpected(String)
}

/// The transactions of one client.
struct AppendRecorder: Sendable {
  let workload: AppendWorkload
  let client: String
  private(set) var transactions: [AppendHistory.Transaction] = []
  /// Replies that the server should not send.
  var problems: [String] = []

  init(_ workload: AppendWorkload, _ client: String) {
    self.workload = workload
    self.client = client
  }

  /// Records reads of one state.
  mutating func record(
    _ reads: [String: ListState], began: Int64, ended: Int64? = nil, at version: Timestamp?
  ) {
    checkCounts(reads)
    let operations = reads.map { AppendHistory.Operation.read($0, $1.list) }
    transactions.append(
      AppendHistory.Transaction(
        client, operations, began: began, ended: ended ?? workload.now, version: version?.microseconds))
  }

  private mutating func checkCounts(_ reads: [String: ListState]) {
    for (key, state) in reads where state.count != state.list.count {
      problems.append("\(client): \(key) has \(state.list.count) elements after \(state.count) appends")
    }
  }

  /// Records a transaction whose last request is `commit`. If the server refuses it, its reads still count. If
  /// `commit` throws an error, its outcome is unknown.
  mutating func record(
    _ reads: [String: ListState] = [:], readAt: Timestamp? = nil, appends: [(key: String, element: Int)], began: Int64,
    _ commit: () throws -> AppendReply
  ) throws {
    var transaction = AppendHistory.Transaction(
      client, reads.map { .read($0, $1.list) } + appends.map { .append($0.key, $0.element) }, .unknown, began: began)
    defer { transactions.append(transaction) }
    checkCounts(reads)
    let reply = try commit()
    transaction.ended = workload.now
    switch reply {
    case .committed(let version):
      transaction.outcome = .committed
      transaction.version = version?.microseconds
    case .aborted:
      transaction.outcome = .aborted
      record(reads, began: began, at: readAt)
    case .unexpected(let text): problems.append("\(client): \(text)")
    }
  }
}

/// A client that makes one transaction after the other.
protocol AppendClient: AnyObject {
  /// Makes a few transactions.
  /// - Throws: any error if the connection ends.
  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws
}

/// The clients of a history, and their results.
struct AppendClients {
  struct Result: Sendable {
    var transactions: [AppendHistory.Transaction] = []
    var problems: [String] = []
  }

  private let wait: () -> [Result]

  /// Starts a thread for each client. They end after `seconds`, or if the server ends their connection.
  init(
    _ workload: AppendWorkload, port: UInt16, seed: UInt64, seconds: Double,
    _ kinds: [(name: String, make: @Sendable (UInt16) throws -> any AppendClient)]
  ) {
    let deadline = ContinuousClock.now + .seconds(seconds)
    wait = startThreads(kinds.count) { index in
      var random = SplitMix(seed: seed &* 1000 &+ UInt64(index))
      var recorder = AppendRecorder(workload, "\(kinds[index].name) \(index)")
      do {
        let client = try kinds[index].make(port)
        while ContinuousClock.now < deadline { try client.step(&recorder, &random) }
      } catch { return Result(transactions: recorder.transactions, problems: recorder.problems + ["ended: \(error)"]) }
      return Result(transactions: recorder.transactions, problems: recorder.problems)
    }
  }

  /// Waits until all clients have ended.
  func results() -> [Result] { wait() }
}
