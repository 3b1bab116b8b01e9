import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

/// The databases of a data directory that had no commit log when a backup was made, or did not exist. Their commits are
/// not copied, so a moment is known only as long as they do not change.
struct UnfollowedDatabases {
  /// A change of one of these databases since the backup.
  enum Change: Equatable {
    /// The database has a commit log now, so the commits after another backup can be copied.
    case began(DatabaseID)
    /// The database was written without a log.
    case written(DatabaseID)
  }

  private let directory: String
  /// The paths of the databases that are followed.
  private let followed: Set<String>
  /// The versions of the last commits in the backup, by the paths of the files.
  private let versions: [String: Int64]
  /// The files that have not changed, as they were last read.
  private var unchanged: [String: FileFacts] = [:]

  /// The time for which a file must not have been written before its facts tell one state from another, in seconds.
  private static let quietSeconds = 2

  /// Begins with the state of a backup and the databases whose commits are copied after it.
  init(of directory: String, _ state: BackupState?, besides databases: [FollowedLog.Database]) {
    self.directory = directory
    followed = Set(databases.map(\.path))
    versions = Dictionary(
      (state?.stores ?? []).compactMap { store in store.position.map { (store.path, $0.version) } },
      uniquingKeysWith: { first, _ in first })
  }

  /// The databases that the directory has now, with the paths of their files in it.
  /// - Throws: ``HearthError`` if the directory cannot be read.
  func present() throws -> [(id: DatabaseID, path: String)] {
    try DataDirectory.databases(in: directory).compactMap { id in
      let path = String(DataDirectory.file(of: id, in: "").dropFirst())
      return followed.contains(path) ? nil : (id, path)
    }
  }

  /// Returns a change since the backup, preferably of a database that has a log now, or `nil` if nothing changed. Cost: a
  /// system call for each database that was not written since the last call.
  /// - Throws: `StorageError` if a database cannot be read.
  mutating func change() throws -> Change? {
    var written: Change?
    for (id, path) in try present() {
      let file = "\(directory)/\(path)"
      guard let facts = FileFacts(of: file), unchanged[path] != facts else { continue }
      let store = try StoredDatabase.openReadOnly(LMDBOptions(path: file))
      if try store.logOrigin() != nil { return .began(id) }
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      if try DatabasePosition(snapshot).version != versions[path] {
        written = .written(id)
      } else if time(nil) - facts.changedSeconds > Self.quietSeconds {
        unchanged[path] = facts
      }
    }
    return written
  }
}

extension BackupState {
  /// Returns the first moment at which another database than `databases` may have changed since the backup with this state,
  /// as far as the states of the later backups show it, the next one first.
  func firstMomentUnknown(besides databases: [FollowedLog.Database], _ later: [BackupState]) -> Timestamp? {
    var first: Int64?
    for (index, next) in later.enumerated() {
      for store in next.stores where !databases.contains(where: { $0.path == store.path }) {
        guard let position = store.position else { continue }
        if let known = self.store(store.path)?.position {
          // Its commits may be of any time since the backup.
          if index == 0, position.version != known.version { first = min(first ?? .max, known.version + 1) }
        } else {
          first = min(first ?? .max, position.created)
        }
      }
    }
    return first.map { Timestamp(uncheckedMicroseconds: $0) }
  }
}
