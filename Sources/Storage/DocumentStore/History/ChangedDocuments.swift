import KeyEncoding
package import KeyValue

/// A document that a commit changed.
package struct ChangedDocument: Hashable, Sendable {
  /// The number of the document's collection.
  package var collection: UInt64
  /// The document's ID as ``OrderedCode/append(lastID:to:)`` encodes it.
  package var idCode: [UInt8]
}

extension SnapshotReader {
  /// Returns the documents that commits after `version` changed, each once, in one collection or in all.
  ///
  /// The version must not be below ``MetaKey/historyFrom``; the log reaches at least that far back. Cost: one step
  /// per change.
  /// - Returns: `nil` if there are more than `changesMax` changes.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package func changedDocuments(
    after version: Int64, in collection: UInt64?, changesMax: Int
  ) throws(StorageError) -> Set<ChangedDocument>? {
    var key = StorageKey()
    if let collection {
      key.begin(.collectionChanges)
      key.append(number: collection)
    } else {
      key.begin(.changeLog)
    }
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(version: version + 1)
    try rows.seek(key)
    var changed: Set<ChangedDocument> = []
    var left = changesMax
    while let suffix = try rows.suffix() {
      guard left > 0 else { return nil }
      left -= 1
      if let collection {
        guard suffix.count > 8 else { throw .corruption(path: "collectionChanges", detail: "a key has no document ID") }
        changed.insert(ChangedDocument(collection: collection, idCode: Array(suffix[8...])))
      } else {
        let value = rows.cursor.value
        guard value.count > 2 else { throw .corruption(path: "changeLog", detail: "malformed change-log row") }
        var rest = UnsafeRawBufferPointer(rebasing: value[1...])
        guard let number = OrderedCode.takeNumber(&rest) else {
          throw .corruption(path: "changeLog", detail: "a row has no collection number")
        }
        changed.insert(ChangedDocument(collection: number, idCode: Array(rest)))
      }
      rows.consume()
    }
    return changed
  }
}
