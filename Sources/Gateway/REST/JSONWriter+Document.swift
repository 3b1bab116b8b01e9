import DocumentModel
import DocumentStore
import WireFormat

extension JSONWriter {
  /// Appends a Document object of a stored document. Cost: one pass over its bytes.
  mutating func append(
    _ key: DocumentKey, _ document: StoredDocument, in database: DatabaseID, mask: FieldMask?
  ) throws {
    let root = database.documentsRootBytes
    var failure: WireError?
    root.withUnsafeBytes { root in
      key.path.bytes.withUnsafeBytes { path in
        do throws(WireError) {
          try DocumentJSON.append(
            EncodedDocument(
              root: root, path: path, fields: document.fields,
              createTime: Timestamp(uncheckedMicroseconds: document.createVersion),
              updateTime: Timestamp(uncheckedMicroseconds: document.updateVersion)),
            mask: mask, to: &self)
        } catch { failure = error }
      }
    }
    if let failure { throw failure }
  }

  /// Appends a Document object.
  mutating func append(_ document: Document, in database: DatabaseID, mask: FieldMask?) throws {
    let root = database.documentsRootBytes
    var failure: WireError?
    root.withUnsafeBytes { root in
      document.key.path.bytes.withUnsafeBytes { path in
        document.fields.bytes.withUnsafeBytes { fields in
          do throws(WireError) {
            try DocumentJSON.append(
              EncodedDocument(
                root: root, path: path, fields: fields, createTime: document.createTime,
                updateTime: document.updateTime),
              mask: mask, to: &self)
          } catch { failure = error }
        }
      }
    }
    if let failure { throw failure }
  }

  /// Writes the name of a member given as text.
  mutating func key(_ name: String) {
    var copy = name
    copy.withUTF8 { key(UnsafeRawBufferPointer($0)) }
  }

  /// Ends a text that is a whole body.
  consuming func finish() -> [UInt8] {
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  /// Takes what was written so far out; the text goes on.
  mutating func take() -> [UInt8] {
    defer { bytes.removeAll() }
    return bytes
  }

  /// Appends the full name of a document as a string.
  mutating func name(_ key: DocumentKey, in database: DatabaseID) {
    string(ResourceName(database: database, path: key.path).text)
  }
}
