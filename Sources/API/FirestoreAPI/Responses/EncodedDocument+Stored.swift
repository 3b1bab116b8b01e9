import DocumentModel
import WireFormat

extension EncodedDocument {
  /// Calls `body` with the encoded parts of a stored document. `root` is the name of the documents root in UTF-8.
  static func with(
    _ key: DocumentKey, _ document: StoredDocument, root: [UInt8],
    _ body: (EncodedDocument) throws(WireError) -> Void
  ) throws(WireError) {
    try root.withRawBytes { (root) throws(WireError) in
      try key.path.bytes.withRawBytes { (path) throws(WireError) in
        try body(
          EncodedDocument(
            root: root, path: path, fields: document.fields,
            createTime: Timestamp(uncheckedMicroseconds: document.createVersion),
            updateTime: Timestamp(uncheckedMicroseconds: document.updateVersion)))
      }
    }
  }

  /// Calls `body` with the encoded parts of a document. `root` is the name of the documents root in UTF-8.
  static func with(
    _ document: Document, root: [UInt8], _ body: (EncodedDocument) throws(WireError) -> Void
  ) throws(WireError) {
    try root.withRawBytes { (root) throws(WireError) in
      try document.key.path.bytes.withRawBytes { (path) throws(WireError) in
        try document.fields.bytes.withRawBytes { (fields) throws(WireError) in
          try body(
            EncodedDocument(
              root: root, path: path, fields: fields, createTime: document.createTime,
              updateTime: document.updateTime))
        }
      }
    }
  }
}
