/// The reason why PostgreSQL did not perform a request.
package enum PostgresFailure: Error, Equatable, Sendable {
  /// The text is not a URL of the form `postgres://USER@HOST/DATABASE`. It may have a password, so no message repeats
  /// it.
  case notAURL
  /// libpq cannot be loaded. The text is the reason.
  case noLibrary(String)
  /// No connection could be made, or it ended. The request may have been performed. The text is that of libpq.
  case connection(String)
  /// No answer came in time. The request may have been performed, or may yet be.
  case noAnswer
  /// PostgreSQL performed the request with a warning: an operator canceled the wait for a standby, so a failover may
  /// lose it.
  case notDurable
  /// PostgreSQL refused the request, and nothing of it was performed. The state is the code of five letters that the
  /// SQL standard names SQLSTATE.
  case refused(state: String, message: String)
  /// The database has no tables of a cluster.
  case noTables
  /// The database has tables of a cluster already.
  case tablesExist
  /// The database has the tables of the cluster of this project already.
  case otherCluster(project: String)
  /// The former version of Hearth made the tables, and ``ClusterSchema/upgrade(at:)`` was not called.
  case formerFormat
  /// Another version of Hearth made the tables, in a format that this one does not know.
  case unknownFormat(String)
  /// Tables of these names exist, but Hearth did not make them.
  case foreignTables
  /// No host of the URL accepts writes: it is a standby, or only reading is permitted there.
  case readOnly(String)
  /// The key of this node is not that of the cluster.
  case otherKey
  /// The session does not own the project any more, so nothing was performed.
  case notOwner
  /// The parts of a configuration are larger than ``ClusterConfiguration/bytesMax`` together.
  case configurationTooLarge
  /// The stored configuration of this version is damaged, or a newer version of Hearth wrote it.
  case damagedConfiguration(Int64)
  /// The answer does not have the expected form.
  case unexpectedAnswer

  /// The SQLSTATE of a refusal.
  package var state: String? {
    if case .refused(let state, _) = self { state } else { nil }
  }

  /// Whether the same request may succeed at once: PostgreSQL ended its transaction in favor of another one.
  var isConflict: Bool {
    if case .refused(let state, _) = self { state == "40001" || state == "40P01" } else { false }
  }

  /// Whether a row with the same key exists.
  var isDuplicate: Bool {
    if case .refused(let state, _) = self { state == "23505" } else { false }
  }

  /// Whether a table does not exist.
  var isMissingTable: Bool {
    if case .refused(let state, _) = self { state == "42P01" } else { false }
  }
}

extension PostgresFailure: CustomStringConvertible {
  /// A text for operators: the failure and the remedy.
  package var description: String {
    switch self {
    case .notAURL:
      "the address of PostgreSQL must have the form postgres://USER@HOST/DATABASE, with %40 for an @ and %2F for a / of a "
        + "password"
    case .noLibrary(let reason): "cannot load libpq (Debian: libpq5): \(reason)"
    case .connection(let message) where message.contains("password"):
      "no connection to PostgreSQL: \(message); set PGPASSWORD, or add a line to ~/.pgpass"
    case .connection(let message): "no connection to PostgreSQL: \(message)"
    case .readOnly(let message):
      "no host of the URL accepts writes: \(message); name all hosts of the PostgreSQL cluster in the URL, separated by commas"
    case .noAnswer: "PostgreSQL did not answer in time"
    case .notDurable: "PostgreSQL performed a request, but its wait for a standby was canceled"
    case .refused("42501", let message): "the role has too few rights in PostgreSQL: \(message)"
    case .refused(let state, let message): "PostgreSQL refused a request: \(message) (\(state))"
    case .noTables: "the PostgreSQL database has no tables of a cluster; make them with `hearth cluster init`"
    case .tablesExist: "the PostgreSQL database has the tables of a cluster already"
    case .otherCluster(let project):
      "the PostgreSQL database has the cluster of project \(project) already; a cluster needs a database of its own"
    case .foreignTables:
      "the PostgreSQL database has tables named hearth_… of another form; use a database of its own for the cluster"
    case .otherKey: "the key is not that of this cluster; copy the file that `hearth cluster init` wrote"
    case .notOwner: "this node does not own the cluster any more"
    case .configurationTooLarge:
      "rules, storage rules and indexes have more than \(ClusterConfiguration.bytesMax >> 20) MiB together"
    case .formerFormat:
      "the tables of the cluster have format \(ClusterSchema.format - 1), without tables for snapshots; stop the nodes of the "
        + "former version, then run: hearth cluster upgrade"
    case .unknownFormat(let found):
      "the tables of the cluster have format \(found), and this version of Hearth knows format "
        + "\(ClusterSchema.format); use the version that made them, or a newer one"
    case .damagedConfiguration(let version):
      "version \(version) of the configuration is damaged, or a newer version of Hearth wrote it; deploy it again"
    case .unexpectedAnswer: "PostgreSQL gave an answer of another form; other software may have changed the tables"
    }
  }
}
