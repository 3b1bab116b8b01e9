import Foundation

/// A reference to a document. The document need not exist.
///
///     let ann = hearth.document("users/ann")
///     try await ann.set(Person(name: "Ann"))
///     let name = try await ann.get(as: Person.self).data?.name
///     let notes = ann.collection("notes")
///
/// A property of this type in a `Codable` type is a reference value.
public struct DocumentReference: Sendable, CustomStringConvertible {
  /// The path below the documents root, such as `users/ann`.
  public let path: String
  /// The database of the document.
  public let client: Hearth

  init(_ client: Hearth, path: String) { (self.client, self.path) = (client, path) }

  /// The document with a full name, possibly in another database, or `nil` if the name is malformed.
  init?(name: String, _ client: Hearth) {
    let root = client.documentsName + "/"
    if name.utf8.starts(with: root.utf8) {
      self.init(client, path: String(decoding: name.utf8.dropFirst(root.utf8.count), as: UTF8.self))
      return
    }
    let parts = name.pathParts(maxSplits: 5)
    guard parts.count == 6, parts[0] == "projects", parts[2] == "databases", parts[4] == "documents" else { return nil }
    self.init(client.database(parts[3], of: parts[1]), path: parts[5])
  }

  /// The document ID, which is the last part of the path.
  public var id: String { path.pathParts().last ?? "" }

  /// The collection that contains the document.
  public var parent: CollectionReference {
    CollectionReference(client, path: path.pathParent)
  }

  /// Returns a subcollection of the document.
  public func collection(_ id: String) -> CollectionReference { client.collection("\(path)/\(id)") }

  /// The path.
  public var description: String { path }

  /// `projects/P/databases/D/documents/users/ann`
  var name: String { "\(client.documentsName)/\(path)" }
}

extension DocumentReference: Hashable {
  /// Whether both refer to the same document of the same database. Names are compared by bytes.
  public static func == (a: DocumentReference, b: DocumentReference) -> Bool {
    a.path.hasBytes(of: b.path) && a.client.documentsName.hasBytes(of: b.client.documentsName)
  }

  /// Hashes the bytes of the name.
  public func hash(into hasher: inout Hasher) {
    var path = path
    path.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension DocumentReference: Codable {
  /// Decodes a reference value of a document.
  /// - Throws: `DecodingError` with any other decoder, because it has no database.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.typeMismatch(
      DocumentReference.self,
      .init(
        codingPath: decoder.codingPath,
        debugDescription: "A DocumentReference can be decoded only from a document."))
  }

  /// Encodes a reference value of a document. With other encoders, encodes the full name.
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }
}

/// A reference to a collection, and the query of all of its documents.
///
///     let ref = try await hearth.collection("users").add(Person(name: "Ann"))
///     let adults = try await hearth.collection("users").where("age", .greaterThanOrEqual, 18).get(as: Person.self)
public struct CollectionReference: Sendable, Queryable {
  /// The path below the documents root, such as `users` or `users/ann/notes`.
  public let path: String
  /// The database of the collection.
  public let client: Hearth

  init(_ client: Hearth, path: String) { (self.client, self.path) = (client, path) }

  /// The collection ID, which is the last part of the path.
  public var id: String { path.pathParts().last ?? "" }

  /// The query of all documents in the collection.
  public var query: Query {
    Query(client, parent: path.pathParent, collectionID: id, isGroup: false)
  }

  /// Returns a document of the collection. Without `id`, its ID is random: 20 letters and digits.
  public func document(_ id: String? = nil) -> DocumentReference {
    client.document("\(path)/\(id ?? Self.randomID())")
  }

  /// Creates a document with a random ID.
  /// - Throws: ``HearthClientError`` if the request fails, `EncodingError` if `value` cannot be encoded as a document.
  @discardableResult
  public func add(_ value: some Encodable) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(value)
    return reference
  }

  /// Creates a document with these fields and a random ID.
  ///
  ///     try await hearth.collection("todos").add(["title": title, "owner": owner, "madeAt": .serverTimestamp])
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func add(_ fields: [String: (any FieldValueConvertible)?]) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(fields)
    return reference
  }

  /// Creates a document with these fields and a random ID.
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func add(_ fields: [String: FieldValue]) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(fields)
    return reference
  }

  private static func randomID() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return String((0..<20).map { _ in letters[Int.random(in: letters.indices)] })
  }
}
