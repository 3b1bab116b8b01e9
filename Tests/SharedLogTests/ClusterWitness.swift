import ClusterTesting
import LogEngine
import SharedLog

/// The body of a simulated commit: an identifier and a version.
struct ClusterCommit {
  let id: UInt64
  let version: Int64

  init(id: UInt64, version: Int64) {
    self.id = id
    self.version = version
  }

  init(_ body: [UInt8]) {
    func number(_ range: Range<Int>) -> UInt64 { body[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    id = number(0..<8)
    version = Int64(bitPattern: number(8..<16))
  }

  var body: [UInt8] {
    withUnsafeBytes(of: id.littleEndian) { [UInt8]($0) } + withUnsafeBytes(of: version.littleEndian) { [UInt8]($0) }
  }
}

/// Sees everything that happens in a ``ClusterRun``, and says when it contradicts what a cluster promises.
struct ClusterWitness {
  struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  /// The entries that are durable: the one history.
  private(set) var line: [SharedEntry] = []
  private(set) var lastVersion: Int64 = 0
  /// The number of entries up to the last one that was acknowledged.
  private(set) var acknowledged: UInt64 = 0
  /// What happened, so that a test can say that enough did.
  private(set) var counts = Counts()
  private var committed: Set<UInt64> = []
  private var absent: Set<UInt64> = []
  private var promised: Int64 = 0

  struct Counts: Equatable {
    var acknowledged = 0, refused = 0, unknown = 0, reads = 0, promises = 0, takeovers = 0, handovers = 0, losses = 0
  }

  /// Adds the entries that became durable.
  mutating func note(_ tables: TableState) throws {
    if let stray = tables.stray.first { throw Violation("an entry out of line at \(stray.position.sequence)") }
    for entry in tables.entries where entry.position.sequence > UInt64(line.count) {
      guard entry.position.sequence == UInt64(line.count) + 1 else { throw Violation("a gap in the log") }
      line.append(entry)
      switch entry.kind {
      case .takeover: counts.takeovers += 1
      case .handover: counts.handovers += 1
      case .batch:
        let commit = ClusterCommit(entry.body)
        guard committed.insert(commit.id).inserted else { throw Violation("commit \(commit.id) is in the log twice") }
        guard !absent.contains(commit.id) else { throw Violation("commit \(commit.id) was refused, but is there") }
        guard commit.version > lastVersion else { throw Violation("version \(commit.version) after \(lastVersion)") }
        guard commit.version > promised else { throw Violation("version \(commit.version) below a promise") }
        lastVersion = commit.version
      }
    }
    if let last = tables.entries.last, line[Int(last.position.sequence) - 1] != last {
      throw Violation("the log has another entry at \(last.position.sequence)")
    }
  }

  mutating func noteAcknowledged(_ id: UInt64, at position: LogPosition) throws {
    let index = Int(position.sequence) - 1
    guard line.indices.contains(index), line[index].position == position, ClusterCommit(line[index].body).id == id
    else {
      throw Violation("commit \(id) is acknowledged, but not in the log")
    }
    acknowledged = max(acknowledged, position.sequence)
    counts.acknowledged += 1
  }

  mutating func noteRefused(_ id: UInt64) throws {
    guard !committed.contains(id) else { throw Violation("commit \(id) is refused, but in the log") }
    counts.refused += 1
    absent.insert(id)
  }

  /// Notes that the log lost durable entries, which their owner must append again.
  mutating func noteLoss() { counts.losses += 1 }

  mutating func noteUnknown() { counts.unknown += 1 }

  /// Notes that a refused commit is tried again.
  mutating func noteRetried(_ id: UInt64) { absent.remove(id) }

  mutating func notePromise(_ version: Int64) {
    promised = max(promised, version)
    counts.promises += 1
  }

  /// Checks an entry that a node applies to a replica with a number of entries.
  func checkApplied(_ entry: SharedEntry, behind count: Int, node: Int) throws {
    guard entry.position.sequence == UInt64(count) + 1 else { throw Violation("node \(node) skips an entry") }
    guard count < line.count, line[count] == entry else {
      throw Violation("node \(node) applies entry \(count + 1), which is not durable")
    }
  }

  mutating func checkRead(_ shown: UInt64, acknowledged before: UInt64) throws {
    guard shown >= before else { throw Violation("a read shows \(shown) entries, but \(before) were acknowledged") }
    guard shown <= UInt64(line.count) else { throw Violation("a read shows what is not durable") }
    counts.reads += 1
  }

  func checkOwners(_ nodes: [Int]) throws {
    guard nodes.count <= 1 else { throw Violation("nodes \(nodes) may all answer reads") }
  }
}

/// A change of the protocol that makes it wrong, in a way that ``ClusterWitness`` must notice.
enum ClusterMutation: CaseIterable {
  /// The tables append behind any entry.
  case noPredecessor
  /// A takeover does not look whether the owner renewed its session meanwhile.
  case noRenewals
  /// A session begins without a look at the last one, so a delayed request ends a later session.
  case noLastSession
  /// The tables count renewals, so one that was lost has the number of the next one.
  case renewalsCounted
  /// A new owner forgets what the former one promised to readers.
  case noFloor
  /// An owner believes in its lease for longer than others wait.
  case leaseTooLong
  /// A read at an owner does not look at the lease.
  case leaseIgnored
  /// A promise is made after the look at the lease instead of before it.
  case leaseCheckedFirst
  /// Followers apply what they see, before it is confirmed.
  case unconfirmedApplied
  /// An owner sends an entry to the followers before the log has it.
  case sentEarly
  /// A lost answer counts as a refusal, so the commit is tried again as a new entry.
  case lostIsRefused
  /// A commit whose outcome cannot be found out is tried again.
  case unknownIsRefused
  /// A visible entry counts as durable.
  case visibleIsDurable
  /// An owner that hears of a later one regards its own commit as refused.
  case replacedIsRefused
  /// A follower does not wait for the owner to append again what the log lost.
  case divergesAtOnce

  var omission: TableState.Omission? {
    switch self {
    case .noPredecessor: .predecessor
    case .noRenewals: .renewals
    case .noLastSession: .lastSession
    case .noFloor: .floor
    case .renewalsCounted: .renewalNumber
    default: nil
    }
  }
}
