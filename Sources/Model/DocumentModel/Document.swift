/// The fields of a document in stored form: the bytes of `google.firestore.v1.Document.fields`.
///
/// A sequence of field-2 map entries, canonical: keys ascending by UTF-8 bytes, no key twice, nested maps likewise.
/// Equal documents have equal bytes, so comparing bytes finds no-op writes. Made and read by `WireFormat`.
package struct EncodedFields: Hashable, Sendable {
  /// The protobuf bytes; empty for a document without fields.
  package let bytes: [UInt8]

  /// Wraps bytes that are known to be canonical.
  package init(canonical bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// No fields.
  package static let none = EncodedFields(canonical: [])
}

/// One document as it is at some version.
package struct Document: Hashable, Sendable {
  /// Where it is.
  package var key: DocumentKey
  /// Its fields in stored form.
  package var fields: EncodedFields
  /// When it came into being, as a commit version.
  package var createTime: Timestamp
  /// When it last changed, as a commit version.
  package var updateTime: Timestamp

  /// Joins the parts.
  package init(key: DocumentKey, fields: EncodedFields, createTime: Timestamp, updateTime: Timestamp) {
    self.key = key
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
