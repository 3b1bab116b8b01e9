import Accounts
import DocumentModel
import DocumentStore
import HearthServer
import LMDBEngine

/// Checks that somebody can sign in to the console of a production server: operators belong to one project, so those of
/// another are unknown there.
struct OperatorChecks {
  let configuration: HearthConfiguration
  /// Whether the project of the server has an operator.
  let hasOperators: Bool

  /// Returns a warning if only other projects of the data directory have operators. Cost: opens the accounts of each.
  /// Do not call it if another object of this process has them open.
  func findings() -> [Finding] {
    guard configuration.consoleAddress != nil, configuration.loadProjects == nil, !hasOperators,
      let project = configuration.project, case .directory(let path) = configuration.storage
    else { return [] }
    let others = DataDirectory.accountsProjects(in: path).filter { $0 != project && Self.hasOperators($0, in: path) }
    guard !others.isEmpty else { return [] }
    let names = others.joined(separator: ", ")
    return [
      .warning(
        "console", "project \(project) has no operator, so nobody can sign in to the console; those of \(names) cannot",
        "Add one with `hearth operators add NAME --role owner --project \(project) --data \(path)`.")
    ]
  }

  private static func hasOperators(_ project: String, in path: String) -> Bool {
    let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: path), readOnly: true)
    guard let store = try? LMDBStore.open(options),
      let accounts = try? AccountStore(
        store: store, project: AccountsProject(project), mode: .production, now: { Clock.system.now() })
    else { return false }
    return !accounts.operators.all.isEmpty
  }
}
