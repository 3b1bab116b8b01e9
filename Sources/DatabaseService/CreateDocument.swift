package import DocumentModel
import DocumentStore

extension Service {
  /// Creates a document (CreateDocument); without an id the server makes one.
  ///
  /// `completion` is called once, on any thread.
  /// - Throws: what is wrong before anything is tried.
  package func createDocument(
    in collection: ResourcePath, id documentID: String?, fields: EncodedFields, database id: DatabaseID,
    completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    var key: DocumentKey?
    if let documentID, !documentID.isEmpty {
      guard !documentID.utf8.contains(UInt8(ascii: "/")) else { throw ModelError.slashInResourceID(documentID) }
      key = DocumentKey(try ResourcePath(checking: collection.appending(documentID).bytes))
    } else {
      key = DocumentKey(collection.appending(DocumentID.random()))
    }
    guard let key else { throw ModelError.emptyResourceID(path: collection.text, index: 0) }
    try write(
      Write(.update(fields, mask: nil), key: key, precondition: .exists(false)), in: id, completion: completion)
  }

  /// Commits one write and answers with the document it leaves.
  func write(
    _ write: Write, in id: DatabaseID, completion: @escaping @Sendable (Result<Document, Status>) -> Void
  ) throws {
    let database = try database(id)
    try commit([write], in: id) { result in
      completion(
        result.flatMap { outcome in
          do {
            return .success(try database.written(write.key, at: outcome.version))
          } catch {
            return .failure(Status(error, database: id))
          }
        })
    }
  }
}

extension DocumentDatabase {
  /// The document as a commit left it, whatever came after.
  fileprivate func written(_ key: DocumentKey, at version: Timestamp) throws -> Document {
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

/// Document ids the server makes.
package enum DocumentID {
  /// 62 to the power of 10: how many texts of ten characters there are.
  private static let tenCharacters: UInt64 = 839_299_365_868_340_224
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  /// A random id: 20 letters and digits, as client SDKs make them (firestore-api.md, section 0).
  ///
  /// Two draws from the system's generator give ten characters each: a draw is a system call.
  package static func random() -> [UInt8] {
    var id: [UInt8] = []
    id.reserveCapacity(20)
    for _ in 0..<2 {
      var number = UInt64.random(in: 0..<Self.tenCharacters)
      for _ in 0..<10 {
        id.append(alphabet[Int(number % 62)])
        number /= 62
      }
    }
    return id
  }
}
