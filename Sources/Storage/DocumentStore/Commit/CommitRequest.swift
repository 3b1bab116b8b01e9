package import DocumentModel

/// A set of writes that happen together or not at all.
package struct CommitRequest: Sendable {
  /// The writes, in order.
  package var writes: [Write]
  /// What the client's transaction read, that the commit rests on; `nil` for a plain commit.
  package var reads: ReadSet?
  /// Who decides whether it may happen; `nil` where that is settled.
  package var authorizer: (any CommitAuthorizer)?
  /// A number, at most 2^56, that the database keeps in the same transaction, until another commit has one: so that who
  /// lost the answer can tell whether it happened.
  package var mark: UInt64?
  /// The edition of the database it is for, which sets how large a document may be.
  var edition = Edition.standard

  /// A plain commit, or that of a client's transaction.
  package init(_ writes: [Write], after reads: ReadSet? = nil, authorizer: (any CommitAuthorizer)? = nil) {
    self.writes = writes
    self.reads = reads
    self.authorizer = authorizer
  }

  /// Whether a write stores the time of the request.
  var hasServerTimestamps: Bool {
    writes.contains { write in write.transforms.contains { $0.kind == .requestTime } }
  }

  /// About how much memory the request holds while it waits, in bytes. Cost: a look at each write.
  package var bytes: Int {
    var sum = (reads?.bytes ?? 0) + (authorizer?.bytes ?? 0)
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
