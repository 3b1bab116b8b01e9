import DocumentModel
import DocumentStore
import WireFormat

extension DocumentDatabase {
  /// Returns the document as a commit left it, regardless of later changes.
  /// - Throws: `UNKNOWN` if that state was removed since, or ``StorageError`` if the read fails.
  func written(_ key: DocumentKey, at version: Timestamp) throws -> Document {
    try read { reader in
      guard let row = try reader.collection(key.collection),
        let stored = try reader.document(key.id, in: row.number, at: version.microseconds)
      else {
        // The history was trimmed before a repeated request arrived, or the database was cleared.
        throw Status(.unknown, "The write was applied, but the history of the document was removed since.")
      }
      return Document(
        key: key, fields: EncodedFields(canonical: Array(stored.fields)),
        createTime: Timestamp(uncheckedMicroseconds: stored.createVersion),
        updateTime: Timestamp(uncheckedMicroseconds: stored.updateVersion))
    }
  }
}
