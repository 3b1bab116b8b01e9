import DocumentModel
import DocumentStore
import WireFormat

extension DocumentDatabase {
  /// Returns the document as a commit left it, regardless of later changes.
  func written(_ key: DocumentKey, at version: Timestamp) throws -> Document {
    try read { reader in
      guard let row = try reader.collection(key.collection),
        let stored = try reader.document(key.id, in: row.number, at: version.microseconds)
      else {
        throw Status(.notFound, "Document \"\(ResourceName(database: id, path: key.path).text)\" not found.")
      }
      return Document(
        key: key, fields: EncodedFields(canonical: Array(stored.fields)),
        createTime: Timestamp(uncheckedMicroseconds: stored.createVersion),
        updateTime: Timestamp(uncheckedMicroseconds: stored.updateVersion))
    }
  }
}
