package import DocumentModel
package import RulesEngine
import Synchronization

/// Which ruleset guards which database.
///
/// What was uploaded for a database stands above what was uploaded for its project, that above the file of the
/// database, that above the file of all others. Any number of threads may ask; a change holds from the next request on.
package final class RulesBook: Sendable {
  /// What guards a database.
  package enum Rules: Sendable {
    /// Nothing: there are no rules for it.
    case none
    /// Rules.
    case ruleset(GuardingRuleset)
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
    var files: [String: GuardingRuleset] = [:]
    /// What was found already.
    var found: [DatabaseID: Rules] = [:]
  }

  private let state = Mutex(State())
  private let observers = Mutex<[@Sendable () -> Void]>([])
  /// Databases whose rules are remembered; names cost clients nothing.
  private static let foundMax = 4096

  /// A book without rules.
  package init() {}

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
    change { $0.files[name ?? ""] = GuardingRuleset(ruleset) }
  }

  /// Sets the rules of a project or a database over those from files.
  package func upload(_ ruleset: Ruleset, to place: Place) {
    change { $0.uploads[place] = .ruleset(GuardingRuleset(ruleset)) }
  }

  /// Has every request to a project or a database fail with a text, because its rules do not compile.
  package func uploadBroken(_ text: String, to place: Place) {
    change { $0.uploads[place] = .broken(text) }
  }

  /// The text of the rules that guard a project or a database; `nil` where there are none.
  package func source(at place: Place) -> String? {
    let id: DatabaseID?
    switch place {
    case .project(let project): id = DatabaseID(project: project)
    case .database(let database): id = database
    }
    guard let id, case .ruleset(let guarding) = inForce(for: id) else { return nil }
    return String(decoding: guarding.ruleset.source.bytes, as: UTF8.self)
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

/// A ruleset as an object, so that each request takes one reference to it.
package final class GuardingRuleset: Sendable {
  /// The rules.
  package let ruleset: Ruleset

  init(_ ruleset: Ruleset) { self.ruleset = ruleset }
}
