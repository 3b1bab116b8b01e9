package import DocumentModel
package import DocumentStore
import Synchronization
package import WireFormat

/// The state of a document after a change, shared by all listeners that are told of it.
///
/// Each dialect writes it once; the bytes are kept here for the others.
package final class WatchedDocument: Sendable {
  /// Who writes it, and how.
  package enum Encoding: Int, CaseIterable, Sendable {
    /// The `Document` message as JSON, non-ASCII characters escaped.
    case json
    /// The `Document` message as protobuf.
    case protobuf
  }

  /// Where it is.
  package let key: DocumentKey
  /// Its fields.
  package let fields: EncodedFields
  /// The version at which it came into being.
  package let createVersion: Int64
  /// The version of its last change.
  package let updateVersion: Int64
  private let encodings = Mutex<[[UInt8]?]>(Array(repeating: nil, count: Encoding.allCases.count))

  /// Holds a state.
  package init(_ key: DocumentKey, _ fields: EncodedFields, createVersion: Int64, updateVersion: Int64) {
    self.key = key
    self.fields = fields
    self.createVersion = createVersion
    self.updateVersion = updateVersion
  }

  /// Copies a stored document.
  package convenience init(_ key: DocumentKey, _ stored: StoredDocument) {
    self.init(
      key, EncodedFields(canonical: Array(stored.fields)), createVersion: stored.createVersion,
      updateVersion: stored.updateVersion)
  }

  /// Copies what a mask keeps of a stored document.
  /// - Throws: ``WireError`` when the stored bytes are no fields.
  package convenience init(_ key: DocumentKey, _ stored: StoredDocument, keptBy mask: FieldMask) throws(WireError) {
    self.init(
      key, try DocumentProtobuf.fields(stored.fields, keptBy: mask), createVersion: stored.createVersion,
      updateVersion: stored.updateVersion)
  }

  /// What a mask keeps of the document.
  /// - Throws: ``WireError`` when its bytes are no fields.
  package func kept(by mask: FieldMask) throws(WireError) -> WatchedDocument {
    var kept: EncodedFields?
    var failure: WireError?
    fields.bytes.withUnsafeBytes { bytes in
      do throws(WireError) { kept = try DocumentProtobuf.fields(bytes, keptBy: mask) } catch { failure = error }
    }
    if let failure { throw failure }
    return WatchedDocument(key, kept ?? .none, createVersion: createVersion, updateVersion: updateVersion)
  }

  /// The document in a dialect, made by `encode` where nobody asked before. Cost: a short lock.
  /// - Throws: what `encode` throws.
  package func encoded(_ dialect: Encoding, _ encode: (WatchedDocument) throws -> [UInt8]) rethrows -> [UInt8] {
    if let bytes = encodings.withLock({ $0[dialect.rawValue] }) { return bytes }
    let bytes = try encode(self)
    encodings.withLock { $0[dialect.rawValue] = bytes }
    return bytes
  }
}
