package import DocumentModel
package import RulesEngine
import Synchronization

/// The active ruleset of each database.
///
/// Rules uploaded for a database override those uploaded for its project. These override the rules file of the
/// database, and that one overrides the rules file of all other databases. Any number of threads may use the
/// registry. A change takes effect with the next request.
package final class RulesRegistry: Sendable {
  /// The rules of a database.
  package enum Rules: Sendable {
    /// The database has no rules.
    case none
    /// A compiled ruleset.
    case ruleset(ActiveRuleset)
    /// The uploaded rules do not compile: every request fails with this text.
    case broken(String)
  }

  /// The databases whose rules an upload replaces.
  package enum Place: Hashable, Sendable {
    /// All databases of a project that have no rules of their own.
    case project(String)
    /// One database.
    case database(DatabaseID)
  }

  private struct State {
    var uploads: [Place: Rules] = [:]
    /// By database name, in every project. The empty name means all databases without a rules file of their own.
    var files: [String: ActiveRuleset] = [:]
    /// A cache of results.
    var found: [DatabaseID: Rules] = [:]
  }

  private let state = Mutex(State())
  private let observers = Mutex<[@Sendable () -> Void]>([])
  /// The maximum number of databases in the cache: clients can send arbitrary names.
  private static let foundMax = 4096

  /// Creates a registry without rules.
  package init() {}

  /// Copies the current rules of another registry. Observers of decisions there do not observe those here.
  package init(copying other: RulesRegistry) {
    var copy = other.state.withLock { State(uploads: $0.uploads, files: $0.files) }
    copy.files = copy.files.mapValues { ActiveRuleset(unobserved: $0) }
    copy.uploads = copy.uploads.mapValues { rules in
      if case .ruleset(let activeRuleset) = rules { .ruleset(ActiveRuleset(unobserved: activeRuleset)) } else { rules }
    }
    state.withLock { $0 = copy }
  }

  /// Returns the active rules of a database. Cost: a short lock.
  package func active(for id: DatabaseID) -> Rules {
    state.withLock { state in
      if let found = state.found[id] { return found }
      let file = state.files[id.database] ?? state.files[""]
      let rules =
        state.uploads[.database(id)] ?? state.uploads[.project(id.project)] ?? file.map(Rules.ruleset) ?? .none
      if state.found.count >= Self.foundMax { state.found.removeAll() }
      state.found[id] = rules
      return rules
    }
  }

  /// Sets the rules from a file for the databases of this name, or with `nil` for all databases without a file of
  /// their own.
  package func set(_ ruleset: Ruleset, forDatabase name: String?) {
    change { $0.files[name ?? ""] = ActiveRuleset(ruleset) }
  }

  /// Sets the rules of a project or a database. They override those from files.
  package func upload(_ ruleset: Ruleset, to place: Place) { upload(ActiveRuleset(ruleset), to: place) }

  /// Sets the rules of a project or a database. They override those from files.
  package func upload(_ activeRuleset: ActiveRuleset, to place: Place) {
    change { $0.uploads[place] = .ruleset(activeRuleset) }
  }

  /// Makes every request to a project or a database fail with a text, because its rules do not compile.
  package func uploadBroken(_ text: String, to place: Place) {
    change { $0.uploads[place] = .broken(text) }
  }

  /// Returns the active rules of a project or a database, or `nil` if it has no rules that compile.
  package func activeRuleset(_ place: Place) -> ActiveRuleset? {
    let id: DatabaseID?
    switch place {
    case .project(let project): id = DatabaseID(project: project)
    case .database(let database): id = database
    }
    guard let id, case .ruleset(let activeRuleset) = active(for: id) else { return nil }
    return activeRuleset
  }

  /// Calls `notify` after every change, on the thread that makes it.
  func observe(_ notify: @escaping @Sendable () -> Void) { observers.withLock { $0.append(notify) } }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      body(&state)
      state.found.removeAll()
    }
    for notify in observers.withLock({ $0 }) { notify() }
  }
}

/// An observer of the decisions of an active ruleset. Called on any thread, possibly by several at once.
package protocol DecisionObserver: AnyObject, Sendable {
  /// Handles a decision, which includes its trace.
  func note(_ decision: Decision)
}

/// A ruleset as an object, so that each request retains a single reference.
package final class ActiveRuleset: Sendable {
  package let ruleset: Ruleset
  private let isObserved = Atomic(false)
  private let currentObserver = Mutex<(any DecisionObserver)?>(nil)

  /// Rules that allow nothing, for databases without rules to which unprivileged callers have no access.
  static let grantingNothing =
    (try? Ruleset(
      compiling: "service cloud.firestore { match /{path=**} { allow read, write: if false; } }")).map(
      ActiveRuleset.init)

  /// Whether rules for files can read documents: their text contains `firestore.`
  package let readsDocuments: Bool
  /// Whether rules for files can read the fields that are known only after the whole file has arrived.
  package let looksAtChecksums: Bool
  /// Whether they can read such a field by a string, so that its absence is not an error:
  /// `request.resource.get('md5Hash', '')`.
  let quotesChecksums: Bool

  /// Activates a ruleset without an observer. Cost: searches its text for some words.
  package init(_ ruleset: Ruleset) {
    self.ruleset = ruleset
    func mentions(_ word: String) -> Bool { ruleset.source.bytes.firstRange(of: Array(word.utf8)) != nil }
    readsDocuments = mentions("firestore.")
    looksAtChecksums = ["md5Hash", "crc32c", "etag", "eneration"].contains(where: mentions)
    quotesChecksums = FileRules.lateFields.contains { mentions("'" + $0) || mentions("\"" + $0) }
  }

  /// Copies an active ruleset without its observer. Cost: O(1).
  init(unobserved other: ActiveRuleset) {
    ruleset = other.ruleset
    readsDocuments = other.readsDocuments
    looksAtChecksums = other.looksAtChecksums
    quotesChecksums = other.quotesChecksums
  }

  /// The observer of decisions. Cost without one: the read of a flag. With one, decisions are traced.
  var observer: (any DecisionObserver)? {
    isObserved.load(ordering: .relaxed) ? currentObserver.withLock { $0 } : nil
  }

  /// Returns the observer, which stays until the rules are replaced. Calls `make` if no observer exists yet.
  package func observer(_ make: () -> any DecisionObserver) -> any DecisionObserver {
    currentObserver.withLock { current in
      if let current { return current }
      let observer = make()
      current = observer
      isObserved.store(true, ordering: .relaxed)
      return observer
    }
  }
}
