import Glibc

/// The reason why a storage engine failed.
///
/// The text is constant per case; the facts are in the payload. The service maps each case to a wire code in one place.
public enum StorageError: Error, Equatable, Sendable {
  /// The data file reached its configured size. Nothing of the transaction was written.
  case storageFull(limitBytes: Int)
  /// The disk is full. Nothing of the transaction was written.
  case diskFull(path: String)
  /// All reader slots are in use.
  case tooManyReaders(limit: Int)
  /// The server has as many databases as it may have, and none can be closed.
  case tooManyDatabases(limit: Int)
  /// A key is empty or longer than ``KeyValueLimits/keyBytesMax``, or a value is longer than its limit.
  case oversized(keyBytes: Int, valueBytes: Int)
  /// Stored bytes are not as this code wrote them. `detail` says which bytes and how they differ.
  case corruption(path: String, detail: String)
  /// Another process has the data open for writing, or this process has it open already.
  case locked(path: String, holder: String)
  /// A newer version or another program wrote the data.
  case unsupportedFormat(path: String, found: String, supported: String)
  /// The file has a commit log beside it that contains newer commits, so the file alone is not the whole store.
  case openLog(path: String)
  /// The directory is the replica of a node of a cluster that runs or was killed. Its files lack the newest commits, and may
  /// have parts of some; the log of the cluster has them.
  case openReplica(path: String)
  /// The directory is a copy of a cluster that was interrupted. Its files may have parts of commits.
  case unfinishedCopy(path: String)
  /// Users other than the owner can access a file or directory with secrets.
  case exposed(path: String)
  /// A system call failed. `operation` names the call, and `code` is its `errno`.
  case system(operation: String, path: String, code: Int32)
  /// The caller's closure ended its write transaction on purpose. Nothing was written.
  case rolledBack
  /// The log of the store did not say whether it has the transaction. `detail` says why. The transaction may be found later,
  /// so it must not be run again.
  case outcomeUnknown(path: String, detail: String)
  /// Another node may append to the log of the store. Nothing was written. `owner` is its address, if it is known.
  case notOwner(of: String, owner: String?)
}

extension StorageError {
  /// Whether the commits of a group that failed with this error may be tried again one by one. That needs two things:
  /// nothing of the group was written, and a part of it may succeed where the whole did not.
  public var permitsParts: Bool {
    switch self {
    case .outcomeUnknown, .notOwner: false
    default: true
    }
  }
}

extension StorageError: CustomStringConvertible {
  /// The failure, its location, and the remedy, in one or two sentences.
  public var description: String {
    switch self {
    case .storageFull(let limit):
      "the database reached its map size of \(limit) bytes; restart with a larger --map-size; reads still work"
    case .diskFull(let path):
      "no space left on the device that holds \(path); free some space, then try again"
    case .tooManyReaders(let limit):
      "all \(limit) reader slots are in use; try again when fewer reads are running"
    case .tooManyDatabases(let limit):
      "the server has \(limit) databases, which is its limit; clear some, use fewer projects, or restart it"
    case .oversized(let keyBytes, let valueBytes):
      "a key of \(keyBytes) bytes or a value of \(valueBytes) bytes is outside the limits of the store"
    case .corruption(let path, let detail):
      "\(path) is damaged: \(detail); run `hearth check` on the data directory and restore from a backup"
    case .locked(let path, let holder):
      "\(path) is in use by \(holder); stop it, or use another --data directory"
    case .unsupportedFormat(let path, let found, let supported):
      "\(path) has format \(found), but this version of hearth reads \(supported); use the version that wrote it"
    case .openLog(let path):
      "\(path) lacks commits that are in the log beside it; stop the server that uses it, or start and stop a server "
        + "if none runs; that moves the commits to the file"
    case .openReplica(let path):
      "\(path) is the replica of a node of a cluster that runs or was killed, so the newest commits are in PostgreSQL and "
        + "not in its files; serve it with --cluster; to use the files, stop the node with SIGTERM (start it first if it "
        + "was killed), which moves the commits there; to read while the cluster runs, ask a node: hearth export --server URL"
    case .unfinishedCopy(let path):
      "\(path) is a copy of a cluster that was interrupted, so a part of it may be missing; run `hearth cluster copy` again, "
        + "or, if PostgreSQL is lost, `hearth check --give-up-damaged-log \(path)`"
    case .exposed(let path):
      "\(path) holds secrets, but users other than its owner may read it; run `chmod go= \(path)` and replace "
        + "the keys in it, which may be known"
    case .system("mkdir", let path, let code):
      "the directory \(path) cannot be created: \(String(cString: strerror(code)))"
        + (code == ENOENT ? "; create the directory that contains it first, or correct the path" : "")
    case .system(let operation, let path, let code):
      "\(operation) failed for \(path): \(String(cString: strerror(code)))"
    case .rolledBack:
      "the write was rolled back"
    case .outcomeUnknown(let path, let detail):
      "it is not known whether \(path) has the commit: \(detail); read what it wrote before you repeat it"
    case .notOwner(let store, let owner):
      "this node does not own \(store)" + (owner.map { "; send writes to \($0)" } ?? "; try again when a node owns it")
    }
  }
}
