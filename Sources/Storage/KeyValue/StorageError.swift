/// Why a storage engine could not do what was asked.
///
/// The text is constant per case, the facts are in the payload. Mapped to the wire once, at the service.
public enum StorageError: Error, Equatable, Sendable {
  /// The data file reached its configured size; nothing of the transaction was written.
  case storageFull(limitBytes: Int)
  /// The disk has no room left; nothing of the transaction was written.
  case diskFull(path: String)
  /// All reader slots are in use.
  case tooManyReaders(limit: Int)
  /// A key is empty or longer than ``KeyValueLimits/keyBytesMax``, or a value longer than its limit.
  case oversized(keyBytes: Int, valueBytes: Int)
  /// Stored bytes are not what this code wrote. `detail` says which and how they differ.
  case corruption(path: String, detail: String)
  /// Another process has the data open for writing, or this one has it open already.
  case locked(path: String, holder: String)
  /// The data was written by a newer version, or is not Hearth's at all.
  case unsupportedFormat(path: String, found: String, supported: String)
  /// A file or directory of secrets that others than its owner can reach.
  case exposed(path: String)
  /// The operating system refused. `operation` names the call, `code` is its `errno`.
  case system(operation: String, path: String, code: Int32)
  /// The caller's own closure gave up; nothing was written. Thrown to end a write transaction without a trace.
  case rolledBack
}

extension StorageError: CustomStringConvertible {
  /// What happened, where, and what to do about it, in one sentence or two.
  public var description: String {
    switch self {
    case .storageFull(let limit):
      "the database reached its map size of \(limit) bytes; restart with a larger --map-size; reads go on meanwhile"
    case .diskFull(let path):
      "no space left on the device that holds \(path); free some, then try again"
    case .tooManyReaders(let limit):
      "all \(limit) reader slots are in use; try again when fewer reads are under way"
    case .oversized(let keyBytes, let valueBytes):
      "a key of \(keyBytes) bytes or a value of \(valueBytes) bytes is outside the limits of the store"
    case .corruption(let path, let detail):
      "\(path) is damaged: \(detail); run `hearth check` on the data directory and restore from a backup"
    case .locked(let path, let holder):
      "\(path) is in use by \(holder); stop it, or use another --data directory"
    case .unsupportedFormat(let path, let found, let supported):
      "\(path) has format \(found), this version of hearth reads \(supported); use a newer hearth"
    case .exposed(let path):
      "\(path) holds secrets, and others than its owner may read it; run `chmod go= \(path)`, and think of the keys in it "
        + "as known to them"
    case .system(let operation, let path, let code):
      "\(operation) failed for \(path) (errno \(code))"
    case .rolledBack:
      "the write was rolled back"
    }
  }
}
