import Basics
package import DocumentModel
import DocumentStore
import Synchronization
package import WireFormat

/// The state of a document after a change, shared by all listeners that are notified of it.
///
/// Each encoding of the document is made once and kept for the other listeners.
package final class WatchedDocument: Sendable {
  /// The encodings that responses use.
  package enum Encoding: Int, CaseIterable, Sendable {
    /// The `Document` message as JSON, with non-ASCII characters escaped.
    case json
    /// The `Document` message as protobuf.
    case protobuf
  }

  package let key: DocumentKey
  package let fields: EncodedFields
  /// The version at which the document was created.
  package let createVersion: Int64
  /// The version of the document's last change.
  package let updateVersion: Int64
  /// The bytes of this document and its encodings that are counted in ``memory``.
  private let countedBytes: Atomic<Int>
  private let encodings = Mutex<[[UInt8]?]>(Array(repeating: nil, count: Encoding.allCases.count))

  /// Creates a document from its fields, which are counted in ``memory``.
  package init(_ key: DocumentKey, _ fields: EncodedFields, createVersion: Int64, updateVersion: Int64) {
    self.key = key
    self.fields = fields
    self.createVersion = createVersion
    self.updateVersion = updateVersion
    countedBytes = Atomic(fields.bytes.count)
    Self.memory.change(by: fields.bytes.count)
  }

  deinit { Self.memory.give(countedBytes.load(ordering: .relaxed)) }

  /// The most bytes of changed documents that wait for all listeners. Above this, a listener that gets a change catches
  /// up from the change log instead.
  package static let waitingBytesMax = 32 << 20
  /// The memory of the documents that exist.
  static let memory = MemoryShare(bytesMax: waitingBytesMax)

  /// Copies a stored document.
  package convenience init(_ key: DocumentKey, _ stored: StoredDocument) {
    self.init(
      key, EncodedFields(canonical: Array(stored.fields)), createVersion: stored.createVersion,
      updateVersion: stored.updateVersion)
  }

  /// Copies the fields of a stored document that a mask selects.
  /// - Throws: ``WireError`` if the stored bytes are malformed.
  package convenience init(_ key: DocumentKey, _ stored: StoredDocument, keptBy mask: FieldMask) throws(WireError) {
    self.init(
      key, try DocumentProtobuf.fields(stored.fields, keptBy: mask), createVersion: stored.createVersion,
      updateVersion: stored.updateVersion)
  }

  /// Returns the document with only the fields that a mask selects.
  /// - Throws: ``WireError`` if the document's bytes are malformed.
  package func kept(by mask: FieldMask) throws(WireError) -> WatchedDocument {
    let kept = try fields.bytes.withRawBytes { (bytes) throws(WireError) in
      try DocumentProtobuf.fields(bytes, keptBy: mask)
    }
    return WatchedDocument(key, kept, createVersion: createVersion, updateVersion: updateVersion)
  }

  /// Returns the document in an encoding. Calls `encode` if it has not been made yet. Cost: a short lock.
  /// - Throws: Any error of `encode`.
  package func encoded(_ encoding: Encoding, _ encode: (WatchedDocument) throws -> [UInt8]) rethrows -> [UInt8] {
    if let bytes = encodings.withLock({ $0[encoding.rawValue] }) { return bytes }
    let bytes = try encode(self)
    let isFirst = encodings.withLock { encodings in
      defer { encodings[encoding.rawValue] = bytes }
      return encodings[encoding.rawValue] == nil
    }
    if isFirst {
      countedBytes.wrappingAdd(bytes.count, ordering: .relaxed)
      Self.memory.change(by: bytes.count)
    }
    return bytes
  }
}
