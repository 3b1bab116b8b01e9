package import DocumentModel

/// A document as a client sent it.
package struct DecodedDocument: Equatable, Sendable {
  /// The name as sent, or empty if the client sent none. Parse it with a decoder's `documentName(_:)` or with
  /// `ResourceName`.
  package var name: [UInt8]
  /// The fields, validated and in canonical form.
  package var fields: EncodedFields

  /// The document without name and fields.
  package static let empty = DecodedDocument(name: [], fields: .none)
}

/// A parser for document names that remembers the latest database, because most names in a request have the same
/// one.
struct DocumentNames {
  /// The database of the request, or `nil` outside a request.
  var database: DatabaseID?
  /// The documents root of the latest name's database, followed by `/`, in UTF-8.
  private var latestRoot: [UInt8] = []
  private var latestDatabase: DatabaseID?

  /// Parses the full name of a document. Cost: low if the name has the same database as the previous one.
  /// - Throws: ``WireError/model(_:)`` with the documented text if the name is invalid.
  mutating func parse(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    if let database = latestDatabase, name.count > latestRoot.count, name.starts(with: latestRoot) {
      let path: ResourcePath
      do throws(ModelError) {
        path = try ResourcePath(checking: [UInt8](name[latestRoot.count...]))
      } catch {
        throw .model(error)
      }
      if let key = DocumentKey(path) { return (database, key) }
    }
    do throws(ModelError) {
      let (database, key) = try ResourceName.document(name)
      latestDatabase = database
      latestRoot = Array((database.documentsRoot + "/").utf8)
      return (database, key)
    } catch {
      throw .model(error)
    }
  }
}
