import Accounts
import Basics
import DocumentModel
import DocumentStore
import Files
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine
import WireFormat

/// The quotas of a project, and what it has stored in a data directory.
struct QuotaUse {
  /// A quota that is set, and the amount that counts toward it.
  struct Row {
    var kind: Quota.Kind
    var limit: Int
    /// The amount, or `nil` if the quota is for requests in a minute.
    var used: Int?

    /// The used part of the quota in percent, rounded down.
    var percent: Int { used.map { Int(Double($0) / Double(max(1, limit)) * 100) } ?? 0 }

    /// A description such as `documents 12 % of 10 GiB`.
    var text: String {
      let limit = kind.isInBytes ? ByteCount.text(limit) : String(limit)
      return used == nil ? "\(kind.rawValue) \(limit) in a minute" : "\(kind.rawValue) \(percent) % of \(limit)"
    }

    /// Appends the members of the row.
    func append(to json: inout JSONWriter) {
      json.add("quota", kind.rawValue)
      json.add("limit", limit)
      if let used { json.add("used", used) }
    }
  }

  /// The quotas of documents, files and accounts that are set. The others concern the requests of the moment.
  let rows: [Row]

  /// Reads the amounts of a project. `filesOwner` is `nil` for the project that has the directory's own files.
  ///
  /// Cost: a few lookups for each database.
  /// - Throws: `StorageError`, `FilesError` or ``CommandFailure`` if the data cannot be read.
  init(_ limits: QuotaLimits, of project: String, filesOwner: String?, in directory: String) throws {
    var rows: [Row] = []
    for kind in [Quota.Kind.documents, .files, .accounts] {
      guard let limit = limits[kind] else { continue }
      let used =
        switch kind {
        case .documents: try Self.documents(of: project, in: directory)
        case .files: try Self.files(of: filesOwner, in: directory)
        default: try Self.accounts(of: project, in: directory)
        }
      rows.append(Row(kind: kind, limit: limit, used: used))
    }
    self.rows = rows
  }

  /// Returns the bytes of the documents of a project.
  /// - Throws: `StorageError` if they cannot be read.
  static func documents(of project: String, in directory: String) throws -> Int {
    try DataDirectory.databases(in: directory).filter { $0.project == project }.reduce(0) { sum, id in
      let options = LMDBOptions(path: DataDirectory.file(of: id, in: directory))
      return sum + (try DocumentUse.bytes(in: StoredDatabase.openReadOnly(options)))
    }
  }

  private static func files(of owner: String?, in directory: String) throws -> Int {
    guard try DataDirectory.hasFiles(of: owner, in: directory) else { return 0 }
    let options = LMDBOptions(path: DataDirectory.filesFile(of: owner, in: directory), readOnly: true)
    return try FileStore.use(in: LMDBStore.open(options))
  }

  private static func accounts(of project: String, in directory: String) throws -> Int {
    guard DataDirectory.accountsProjects(in: directory).contains(project) else { return 0 }
    let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: directory), readOnly: true)
    return try AccountStore(
      store: LMDBStore.open(options), project: AccountsProject(project), mode: .production, now: { 0 }
    ).users.count()
  }
}
