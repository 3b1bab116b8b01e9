/// A record of concurrent transactions that read lists and append to them, as clients saw them.
///
/// Each element is appended at most once. So the lists themselves show the order of the appends, and ``HistoryChecker``
/// can derive which transactions depend on each other. The method is that of Elle (Kingsbury and Alvaro, 2020).
///
/// To record a history, give each client a list of its own, and join the lists after all clients have ended.
package struct AppendHistory: Sendable {
  /// One step of a transaction.
  package enum Operation: Equatable, Sendable {
    /// The list of a key. A missing list is empty.
    case read(String, [Int])
    /// An element at the end of the list of a key.
    case append(String, Int)
  }

  /// The result of a transaction, as its client knows it.
  package enum Outcome: Equatable, Sendable {
    /// The server acknowledged it.
    case committed
    /// The server refused it.
    case aborted
    /// The client received no response. The transaction may or may not have happened.
    case unknown
  }

  /// One transaction of one client.
  package struct Transaction: Sendable {
    /// The kind of client and its number, for messages.
    package var client: String
    package var operations: [Operation]
    package var outcome: Outcome
    /// The transaction happened after this moment, in nanoseconds of any clock that all clients share.
    package var began: Int64
    /// The client knew the outcome at this moment. Ignored if the outcome is unknown.
    package var ended: Int64
    /// The commit time, or for a transaction without appends the time that its reads show, in microseconds. `nil` if
    /// unknown.
    package var version: Int64?

    /// Describes a transaction. By default it is concurrent with all others.
    package init(
      _ client: String, _ operations: [Operation], _ outcome: Outcome = .committed, began: Int64 = .min,
      ended: Int64 = .max, version: Int64? = nil
    ) {
      self.client = client
      self.operations = operations
      self.outcome = outcome
      self.began = began
      self.ended = ended
      self.version = version
    }
  }

  package var transactions: [Transaction]

  /// Creates a history. The order of the transactions does not matter.
  package init(_ transactions: [Transaction] = []) { self.transactions = transactions }
}

extension AppendHistory.Transaction: CustomStringConvertible {
  package var description: String {
    let steps = operations.map { step in
      switch step {
      case .read(let key, let list):
        "reads \(key) = \(list.count > 12 ? "… \(list.suffix(12)), \(list.count) elements" : "\(list)")"
      case .append(let key, let element): "appends \(element) to \(key)"
      }
    }
    return "\(client) \(steps.joined(separator: ", ")): \(outcome)\(version.map { " at \($0)" } ?? "")"
  }
}

/// A property of a history that no strictly serializable database produces. The cases with a letter and a number have
/// the names of Adya's dissertation (1999).
package struct HistoryAnomaly: CustomStringConvertible, Sendable {
  package enum Kind: String, CaseIterable, Sendable {
    /// A read contains an element that no transaction appended.
    case inventedElement
    /// A list contains an element twice.
    case doubledElement
    /// Two reads of a list differ although neither is the beginning of the other.
    case incompatibleOrder
    /// A transaction does not see its own appends, or two of its reads differ.
    case internalInconsistency
    /// G1a: a read contains an element of a transaction that was refused.
    case abortedRead
    /// G1b: a read ends between two appends of one transaction.
    case intermediateRead
    /// A read that began after an append was acknowledged does not contain it.
    case lostAppend
    /// Two transactions read the same state of a list, and both appended to it.
    case lostUpdate
    /// G0: a cycle of appends.
    case writeCycle
    /// G1c: a cycle of appends, and reads of what others appended.
    case informationCycle
    /// G-single: a cycle with exactly one read of a state that another transaction then changed.
    case singleAntiDependency
    /// G2: a cycle with several such reads, for example write skew.
    case antiDependencyCycle
    /// A cycle that includes the order in real time: one transaction ended before another began.
    case realTimeViolation
    /// The commit times or read times do not agree with the lists.
    case versionMismatch
  }

  package let kind: Kind
  /// The transactions that show it, one on a line.
  package let detail: String

  package var description: String { "\(kind): \(detail)" }
}
