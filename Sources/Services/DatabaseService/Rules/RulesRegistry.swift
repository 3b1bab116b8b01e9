package import DocumentModel
package import RulesEngine
import Synchronization

/// Which ruleset guards which database.
///
/// What was uploaded for a database stands above what was uploaded for its project, that above the file of the
/// database, that above the file of all others. Any number of threads may ask; a change holds from the next request on.
package final class RulesRegistry: Sendable {
  /// What guards a database.
  package enum Rules: Sendable {
    /// Nothing: there are no rules for it.
    case none
    /// Rules.
    case ruleset(ActiveRuleset)
    /// Rules were uploaded that do not compile: every request fails with this text.
    case broken(String)
  }

  /// Whose rules an upload replaces.
  package enum Place: Hashable, Sendable {
    /// All databases of a project that have none of their own.
    case project(String)
    /// One database.
    case database(DatabaseID)
  }

  private struct State {
    var uploads: [Place: Rules] = [:]
    /// By database, in every project; the empty name stands for all databases without a file of their own.
    var files: [String: ActiveRuleset] = [:]
    /// What was found already.
    var found: [DatabaseID: Rules] = [:]
  }

  private let state = Mutex(State())
  private let observers = Mutex<[@Sendable () -> Void]>([])
  /// Databases whose rules are remembered; names cost clients nothing.
  private static let foundMax = 4096

  /// A book without rules.
  package init() {}

  /// A book with the rules that another one holds now. Who watches decisions there is not told of those here.
  package init(copying other: RulesRegistry) {
    var copy = other.state.withLock { State(uploads: $0.uploads, files: $0.files) }
    copy.files = copy.files.mapValues { ActiveRuleset(unwatched: $0) }
    copy.uploads = copy.uploads.mapValues { rules in
      if case .ruleset(let guarding) = rules { .ruleset(ActiveRuleset(unwatched: guarding)) } else { rules }
    }
    state.withLock { $0 = copy }
  }

  /// The rules of a database. Cost: a short lock.
  package func inForce(for id: DatabaseID) -> Rules {
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

  /// Sets the rules from a file for the databases of a name, or with `nil` for all that have no file of their own.
  package func set(_ ruleset: Ruleset, forDatabase name: String?) {
    change { $0.files[name ?? ""] = ActiveRuleset(ruleset) }
  }

  /// Sets the rules of a project or a database over those from files.
  package func upload(_ ruleset: Ruleset, to place: Place) { upload(ActiveRuleset(ruleset), to: place) }

  /// Sets the rules of a project or a database over those from files.
  package func upload(_ guarding: ActiveRuleset, to place: Place) {
    change { $0.uploads[place] = .ruleset(guarding) }
  }

  /// Has every request to a project or a database fail with a text, because its rules do not compile.
  package func uploadBroken(_ text: String, to place: Place) {
    change { $0.uploads[place] = .broken(text) }
  }

  /// The rules that guard a project or a database; `nil` where there are none that compile.
  package func guarding(_ place: Place) -> ActiveRuleset? {
    let id: DatabaseID?
    switch place {
    case .project(let project): id = DatabaseID(project: project)
    case .database(let database): id = database
    }
    guard let id, case .ruleset(let guarding) = inForce(for: id) else { return nil }
    return guarding
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

/// Is told what a ruleset in force decides. Called on any thread, by several at once.
package protocol DecisionObserver: AnyObject, Sendable {
  /// Takes a decision with its trace.
  func note(_ decision: Decision)
}

/// A ruleset as an object, so that each request takes one reference to it.
package final class ActiveRuleset: Sendable {
  /// The rules.
  package let ruleset: Ruleset
  private let isWatched = Atomic(false)
  private let known = Mutex<(any DecisionObserver)?>(nil)

  /// Rules that grant nothing; they guard a database without rules where nobody is admitted.
  static let grantingNothing = (try? Ruleset(
    compiling: "service cloud.firestore { match /{path=**} { allow read, write: if false; } }")).map(ActiveRuleset.init)

  /// Whether rules for files may read documents: their text names `firestore.`
  package let readsDocuments: Bool
  /// Whether rules for files may look at what is known only when all of a file has come.
  package let looksAtChecksums: Bool
  /// Whether they may do so by a text, so that what is not there is no error: `request.resource.get('md5Hash', '')`.
  let quotesChecksums: Bool

  /// Rules that nobody watches. Cost: looks for some words in their text.
  package init(_ ruleset: Ruleset) {
    self.ruleset = ruleset
    func mentions(_ word: String) -> Bool { ruleset.source.bytes.firstRange(of: Array(word.utf8)) != nil }
    readsDocuments = mentions("firestore.")
    looksAtChecksums = ["md5Hash", "crc32c", "etag", "eneration"].contains(where: mentions)
    quotesChecksums = FileRules.lateFields.contains { mentions("'" + $0) || mentions("\"" + $0) }
  }

  /// The rules of another one, watched by nobody. Cost: O(1).
  init(unwatched other: ActiveRuleset) {
    ruleset = other.ruleset
    readsDocuments = other.readsDocuments
    looksAtChecksums = other.looksAtChecksums
    quotesChecksums = other.quotesChecksums
  }

  /// Who is told of decisions. Cost: the look at a flag while that is nobody; decisions are traced from then on.
  var watcher: (any DecisionObserver)? {
    isWatched.load(ordering: .relaxed) ? known.withLock { $0 } : nil
  }

  /// Who watches, from now on until the rules are replaced: `make` says who, unless somebody does already.
  package func watcher(_ make: () -> any DecisionObserver) -> any DecisionObserver {
    known.withLock { known in
      if let known { return known }
      let watcher = make()
      known = watcher
      isWatched.store(true, ordering: .relaxed)
      return watcher
    }
  }
}
