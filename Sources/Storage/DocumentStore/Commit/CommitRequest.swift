package import DocumentModel

/// A set of writes to commit atomically.
package struct CommitRequest: Sendable {
  /// The writes, in order.
  package var writes: [Write]
  /// The reads of the client's transaction, which must still be valid at the commit; `nil` for a plain commit.
  package var reads: ReadSet?
  /// Decides whether the commit is allowed; `nil` if no rules apply to it.
  package var authorizer: (any CommitAuthorizer)?
  /// A number, at most 2^56, that the database stores in the same transaction and keeps until the next commit that
  /// has one. A caller that lost the response compares ``DocumentDatabase/lastMark(in:)`` with it to learn whether
  /// the commit happened.
  package var mark: UInt64?
  /// The ID of a request that may arrive again, or `nil` if it arrives once. For about ten minutes, a second request with
  /// the ID gets the outcome of the first one; see ``RecentCommits``.
  package var id: RequestID?
  /// The digest of the writes, if the request has an ID.
  var digest: UInt64 = 0
  /// The edition of the database, which limits the size of documents.
  var edition = Edition.standard

  /// Creates a plain commit, or with `reads` the commit of a client's transaction.
  package init(_ writes: [Write], after reads: ReadSet? = nil, authorizer: (any CommitAuthorizer)? = nil) {
    self.writes = writes
    self.reads = reads
    self.authorizer = authorizer
  }

  /// Whether a transform stores the request time.
  var hasServerTimestamps: Bool {
    writes.contains { write in write.transforms.contains { $0.kind == .requestTime } }
  }

  /// The approximate memory that the request holds while it waits, in bytes. Cost: inspects each write.
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
