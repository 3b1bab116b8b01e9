import DocumentStore
import LogEngine

/// The first commits of a group, which is one record of a log.
enum GroupBeginning {
  /// Returns the operations of the commits up to a version. It is empty if all commits of the group are later.
  /// - Throws: ``CommitBatchError`` if the bytes are not a batch.
  static func of(_ group: UnsafeRawBufferPointer, upTo version: Int64) throws(CommitBatchError) -> CommitBatch {
    var operations = 0
    var kept = 0
    var reader = try CommitBatchReader(group)
    scan: while let operation = try reader.next() {
      operations += 1
      guard case .put(let key, _) = operation else { continue }
      switch CommitGroup.Row(key: key) {
      case .change(let commit)?:
        if commit > version { break scan }
        kept = operations
      // A mark without changes before it belongs to a commit without changes.
      case .mark?: if kept == operations - 1 { kept = operations }
      case nil: break
      }
    }
    var first = CommitBatch()
    reader = try CommitBatchReader(group)
    while first.operations < kept, let operation = try reader.next() { first.append(operation) }
    return first
  }
}
