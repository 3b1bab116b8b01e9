import DocumentModel
import WireFormat

extension EncodedDocument {
  /// Calls `body` with the encoded parts of a stored document. `root` is the name of the documents root in UTF-8.
  static func with<R, E: Error>(
    _ key: DocumentKey, _ document: StoredDocument, root: [UInt8],
    _ body: (EncodedDocument) throws(E) -> R
  ) throws(E) -> R {
    try root.withRawBytes { (root) throws(E) in
      try key.path.bytes.withRawBytes { (path) throws(E) in
        try body(
          EncodedDocument(
            root: root, path: path, fields: document.fields,
            createTime: Timestamp(uncheckedMicroseconds: document.createVersion),
            updateTime: Timestamp(uncheckedMicroseconds: document.updateVersion)))
      }
    }
  }

  /// Calls `body` with the encoded parts of a document. `root` is the name of the documents root in UTF-8.
  static func with<R, E: Error>(
    _ document: Document, root: [UInt8], _ body: (EncodedDocument) throws(E) -> R
  ) throws(E) -> R {
    try root.withRawBytes { (root) throws(E) in
      try document.key.path.bytes.withRawBytes { (path) throws(E) in
        try document.fields.bytes.withRawBytes { (fields) throws(E) in
          try body(
            EncodedDocument(
              root: root, path: path, fields: fields, createTime: document.createTime,
              updateTime: document.updateTime))
        }
      }
    }
  }
}
