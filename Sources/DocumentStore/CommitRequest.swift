package import DocumentModel

/// A set of writes that happen together or not at all.
package struct CommitRequest: Sendable {
  /// The writes, in order.
  package var writes: [Write]
  /// What the commit rests on beside its own documents: the version of each document a client's transaction read
  /// (0 where it was missing). Empty for a plain commit.
  package var reads: [DocumentKey: Int64] = [:]
  /// Collections of which a client's transaction listed documents: none may have changed after ``readVersion``.
  package var listedCollections: Set<ResourcePath> = []
  /// The version the transaction read at.
  package var readVersion: Int64 = 0
  /// The edition of the database it is for, which sets how large a document may be.
  var edition = Edition.standard

  /// A plain commit.
  package init(_ writes: [Write]) {
    self.writes = writes
  }

  /// The commit of a client's transaction.
  package init(_ writes: [Write], of transaction: TransactionTable.Ended) {
    self.writes = writes
    reads = transaction.reads
    listedCollections = transaction.listedCollections
    readVersion = transaction.readVersion
  }

  /// About how much memory the request holds while it waits, in bytes.
  var bytes: Int {
    var sum = 128 * (reads.count + listedCollections.count)
    for write in writes {
      sum += 128 + write.key.path.bytes.count
      if case .update(let fields, let mask) = write.operation {
        sum += fields.bytes.count + 64 * (mask?.paths.count ?? 0)
      }
      for transform in write.transforms {
        switch transform.kind {
        case .appendMissingElements(let elements), .removeAllFromArray(let elements):
          for element in elements { sum += Self.bytes(element) }
        default: sum += 128
        }
      }
    }
    return sum
  }

  private static func bytes(_ value: Value) -> Int {
    let own = MemoryLayout<Value>.stride
    switch value {
    case .string(let text), .reference(let text): return own + text.utf8.count
    case .bytes(let bytes): return own + bytes.count
    case .array(let elements): return elements.reduce(own) { $0 + bytes($1) }
    case .map(let map): return map.entries.reduce(own) { $0 + 32 + $1.key.utf8.count + bytes($1.value) }
    default: return own
    }
  }
}

/// What a commit did.
package struct CommitOutcome: Equatable, Sendable {
  /// The commit's version: its commit time.
  package var version: Timestamp
  /// One result per write, in order.
  package var results: [WriteResult]
}
