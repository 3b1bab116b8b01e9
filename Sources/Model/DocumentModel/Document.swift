/// The fields of a document in stored form: the bytes of `google.firestore.v1.Document.fields`.
///
/// The bytes are a sequence of map entries (field 2) in canonical form: keys ascend by their UTF-8 bytes, no key
/// repeats, and nested maps follow the same rules. Equal documents have equal bytes, so comparing bytes finds
/// writes that change nothing. `WireFormat` encodes and decodes these bytes.
package struct EncodedFields: Hashable, Sendable {
  /// The protobuf bytes; empty for a document without fields.
  package let bytes: [UInt8]

  /// Wraps bytes that are known to be canonical.
  package init(canonical bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The fields of an empty document.
  package static let none = EncodedFields(canonical: [])
}

/// A document as of one version.
package struct Document: Hashable, Sendable {
  package var key: DocumentKey
  package var fields: EncodedFields
  /// The commit version that created the document.
  package var createTime: Timestamp
  /// The commit version that last changed the document.
  package var updateTime: Timestamp

  package init(key: DocumentKey, fields: EncodedFields, createTime: Timestamp, updateTime: Timestamp) {
    self.key = key
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
