import Foundation

/// The name of a document, whether there is one or not.
///
///     let ann = hearth.document("users/ann")
///     try await ann.set(Person(name: "Ann"))
///     let name = try await ann.get(as: Person.self).data?.name
///     let notes = ann.collection("notes")
///
/// As a property of a `Codable` type it is a reference value.
public struct DocumentReference: Sendable, CustomStringConvertible {
  /// The path below the database's root, such as `users/ann`.
  public let path: String
  /// The database it is in.
  public let client: Hearth

  init(_ client: Hearth, path: String) { (self.client, self.path) = (client, path) }

  /// The document that a full name names, which may be of another database.
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

  /// The last part of the path.
  public var id: String { path.pathParts().last ?? "" }

  /// The collection the document is in.
  public var parent: CollectionReference {
    CollectionReference(client, path: path.pathParent)
  }

  /// A collection below the document.
  public func collection(_ id: String) -> CollectionReference { client.collection("\(path)/\(id)") }

  /// The path.
  public var description: String { path }

  /// `projects/P/databases/D/documents/users/ann`
  var name: String { "\(client.documentsName)/\(path)" }
}

extension DocumentReference: Hashable {
  /// Whether both name the same document of the same database; compared byte by byte.
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
  /// Reads a reference value of a document. Other decoders know no database, and it throws there.
  public init(from decoder: any Decoder) throws {
    throw DecodingError.typeMismatch(
      DocumentReference.self,
      .init(codingPath: decoder.codingPath, debugDescription: "A reference can be read from a document only."))
  }

  /// Writes a reference value of a document, or its full name to other encoders.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }
}

/// A collection, which is also the query for all of its documents.
///
///     let ref = try await hearth.collection("users").add(Person(name: "Ann"))
///     let adults = try await hearth.collection("users").where("age", .greaterThanOrEqual, 18).get(as: Person.self)
public struct CollectionReference: Sendable, Queryable {
  /// The path below the database's root, such as `users` or `users/ann/notes`.
  public let path: String
  /// The database it is in.
  public let client: Hearth

  init(_ client: Hearth, path: String) { (self.client, self.path) = (client, path) }

  /// The last part of the path.
  public var id: String { path.pathParts().last ?? "" }

  /// The query for all of its documents.
  public var query: Query {
    Query(client, parent: path.pathParent, collectionID: id, isGroup: false)
  }

  /// A document of the collection, by default one with a new random id of 20 letters and digits.
  public func document(_ id: String? = nil) -> DocumentReference {
    client.document("\(path)/\(id ?? Self.randomID())")
  }

  /// Makes a document with a new random id.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func add(_ value: some Encodable) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(value)
    return reference
  }

  private static func randomID() -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return String((0..<20).map { _ in letters[Int.random(in: letters.indices)] })
  }
}
