package import DocumentModel
package import DocumentStore
package import RulesEngine
import Synchronization

/// An observer of every decision of security rules about a caller's request, for tools that record test suites.
///
/// A service has at most one observer, for its whole lifetime. In production an ``ObservationSwitch`` says when it wants
/// decisions. Decisions are made in three places, and each reports to the observer: ``RulesEvaluation`` for reads and listeners, ``RulesCommitAuthorizer``
/// for commits, and ``FileAuthorizer`` for files. Each record contains its own copy of all documents that the rules
/// read, so concurrent requests cannot mix. Without an observer, a decision costs one more load.
package protocol AccessObserver: AnyObject, Sendable {
  /// Handles a decision. Called on any thread, also by the writer of a database.
  func note(_ record: AccessRecord)
  /// Handles a change that test suites make between tests, such as a write by an administrator. `database` is `nil`
  /// if it concerns all databases.
  func noteSetup(of database: DatabaseID?)
}

/// Whether an observer wants decisions now. Any number of threads may use it.
package final class ObservationSwitch: Sendable {
  private let value: Atomic<Bool>

  /// Creates a switch.
  package init(isOn: Bool) { value = Atomic(isOn) }

  /// Whether the observer wants decisions. Decisions that are being made when it changes may be missed or reported.
  package var isOn: Bool {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }
}

/// A decision of security rules about one request, with its whole input.
package struct AccessRecord: Sendable {
  /// A document that the rules looked up. `fields` is `nil` if the document does not exist.
  package typealias Lookup = (path: ResourcePath, fields: EncodedFields?)

  /// The request that the rules decided about.
  package enum Request: Sendable {
    /// Reads a document, which has these fields if it exists.
    case get(DocumentKey, EncodedFields?)
    /// Runs a query, or lists a collection.
    case list(Query)
    /// Writes documents. `denied` is the denied document with the denied method: a commit verifies documents by `get`.
    case commit([ProposedDocument], denied: (key: DocumentKey, method: RulesMethod)?)
    /// Requests a file.
    case file(FileRequest)
  }

  /// The database of the request. For files, the database of lookups, or `nil` if the rules cannot read documents.
  package var database: DatabaseID?
  package var ruleset: Ruleset
  /// The caller, or `nil` without credentials.
  package var auth: RulesAuth?
  /// `request.time`.
  package var time: Timestamp
  package var request: Request
  /// The documents that the rules looked up, as they were before the request. The decisions on several documents of one
  /// request share them.
  package var lookups: [Lookup]
  package var isAllowed: Bool
}

extension RulesEvaluation {
  /// The documents that the rules have looked up for this request so far, as they were before it. Lookups of the state
  /// after a commit are included only for documents that `changed` does not contain.
  func observedLookups(except changed: [ProposedDocument] = []) -> [AccessRecord.Lookup] {
    var found: [AccessRecord.Lookup] = []
    lookups.forEach { bytes, isAfter, fields in
      guard let path = try? ResourcePath(checking: Array(bytes)), DocumentKey(path) != nil else { return }
      if isAfter, changed.contains(where: { $0.key.path == path }) || found.contains(where: { $0.path == path }) {
        return
      }
      found.removeAll { $0.path == path }
      found.append((path, fields.map { EncodedFields(canonical: Array($0)) }))
    }
    return found
  }

  /// Reports a decision about a read to the observer, if one exists. Callers check
  /// ``RulesEvaluationPool/isObserved`` first, so that unobserved decisions make no request.
  @inline(never)
  func note(
    _ decision: Decision, by authorizer: Authorizer, in database: DocumentDatabase, _ request: AccessRecord.Request
  ) {
    authorizer.evaluations.observer?.note(
      AccessRecord(
        database: database.id, ruleset: authorizer.ruleset.ruleset, auth: authorizer.auth, time: database.now,
        request: request, lookups: observedLookups(), isAllowed: decision.isAllowed))
  }
}
