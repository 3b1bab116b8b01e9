package import KeyValue

/// The reason why a node cannot use its replica. The node must stop, except for ``storage(_:)``.
package enum ReplicaError: Error, Equatable, Sendable {
  /// The data file does not continue this cluster's log: it was written without the cluster, or belongs to another one.
  case notAReplica(path: String)
  /// The log has another history than the replica.
  case diverged
  /// The log no longer has the entries after the replica.
  case truncated
  /// The log has entries of a store whose data file is missing.
  case missingStore(StoreName, sequence: UInt64)
  /// An entry of the log is not readable.
  case malformed(sequence: UInt64, detail: String)
  /// The entry of a store is sealed, and this node has no key or another one; or it is not sealed, and must be.
  case notSealedHere(StoreName, sequence: UInt64)
  /// A data file cannot be read or written.
  case storage(StorageError)
}

extension ReplicaError {
  /// Whether the replica cannot be used any more. Otherwise the same call may succeed later.
  package var isFinal: Bool { if case .storage = self { false } else { true } }

  /// Whether a replica that is loaded anew does not have the error.
  var isMendedByLoading: Bool {
    switch self {
    case .truncated, .diverged, .missingStore: true
    case .notAReplica, .malformed, .notSealedHere, .storage: false
    }
  }
}

extension ReplicaError: CustomStringConvertible {
  /// The failure and the remedy.
  package var description: String {
    switch self {
    case .notAReplica, .diverged, .truncated, .missingStore:
      "\(reason); stop this node, and start it with an empty data directory, which it fills from the cluster"
    case .malformed, .notSealedHere, .storage: reason
    }
  }

  /// The failure without the remedy.
  package var reason: String {
    switch self {
    case .notAReplica(let path):
      "\(path) is not a replica of this cluster's log: it was written without the cluster, or belongs to another cluster"
    case .diverged: "the log of the cluster has another history than this replica"
    case .truncated: "the log of the cluster no longer has the entries after this replica"
    case .missingStore(let store, let sequence):
      "entry \(sequence) of the log changes the data file of \(store), which is missing here"
    case .malformed(let sequence, let detail):
      "entry \(sequence) of the log is not readable: \(detail); another version of hearth may have written it"
    case .notSealedHere(let store, let sequence):
      "entry \(sequence) of the log, of \(store), is not encrypted with the key of this node; give all nodes the same key"
    case .storage(let error): "\(error)"
    }
  }
}
