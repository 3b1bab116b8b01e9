public import Foundation

/// A database on a Hearth server, and who asks.
///
///     let hearth = Hearth(url: URL(string: "https://db.example.com")!, project: "demo")
///     try await hearth.auth.signInAnonymously()
///     try await hearth.document("users/ann").set(Person(name: "Ann"))
///     for try await users in hearth.collection("users").where("age", .greaterThan, 17).snapshots(as: Person.self) {
///       print(users.documents.compactMap(\.data?.name))
///     }
///
/// A value, cheap to copy; copies share connections and who is signed in. All calls throw ``HearthClientError`` for
/// what the server refuses and for a server that was not reached, `EncodingError` and `DecodingError` for types that do
/// not fit, and `CancellationError` where their task was cancelled.
public struct Hearth: Sendable {
  /// How calls say who asks.
  public enum Credentials: Sendable {
    /// Whoever is signed in by ``Hearth/auth``; nobody at first.
    case signedIn
    /// A token that stays, such as `owner` for a server in emulator mode.
    case bearer(String)
    /// Tokens from elsewhere, asked for before every call; `true` tells that the server refused the last one. `nil`
    /// asks without any.
    case provider(@Sendable (_ isRefused: Bool) async throws -> String?)
  }

  /// The project.
  public let project: String
  /// The database's id.
  public let database: String
  let connection: ClientConnection

  /// Sign-in for people.
  public var auth: Authentication { connection.auth }

  /// A client of the server at a URL. Nothing is sent yet.
  /// - Parameter apiKey: the key that sign-in sends. Hearth takes any.
  public init(
    url: URL, project: String, database: String = "(default)", credentials: Credentials = .signedIn,
    apiKey: String = "hearth"
  ) {
    self.init(
      transport: URLSessionTransport(url: url), project: project, database: database, credentials: credentials,
      apiKey: apiKey)
  }

  /// A client of the server that a transport reaches.
  public init(
    transport: any HearthTransport, project: String, database: String = "(default)",
    credentials: Credentials = .signedIn, apiKey: String = "hearth"
  ) {
    self.init(transport, project, database, credentials, apiKey, now: { Date() })
  }

  /// A client with a clock of its own.
  init(
    _ transport: any HearthTransport, _ project: String, _ database: String, _ credentials: Credentials,
    _ apiKey: String = "hearth", now: @escaping @Sendable () -> Date
  ) {
    let auth = Authentication(transport: transport, apiKey: apiKey, now: now)
    self.init(ClientConnection(transport, credentials, auth), project: project, database: database)
  }

  private init(_ connection: ClientConnection, project: String, database: String) {
    (self.connection, self.project, self.database) = (connection, project, database)
  }

  /// The document at a path, such as `users/ann`, whether there is one or not.
  public func document(_ path: String) -> DocumentReference { DocumentReference(self, path: path) }

  /// The collection at a path, such as `users` or `users/ann/notes`.
  public func collection(_ path: String) -> CollectionReference { CollectionReference(self, path: path) }

  /// All collections with this id, at any depth, as a query.
  public func collectionGroup(_ id: String) -> Query { Query(self, parent: "", collectionID: id, isGroup: true) }

  /// Another database of this server, with the same sign-in.
  public func database(_ database: String, of project: String? = nil) -> Hearth {
    Hearth(connection, project: project ?? self.project, database: database)
  }

  // MARK: - Names and targets

  /// `projects/P/databases/D/documents`
  var documentsName: String { "projects/\(project)/databases/\(database)/documents" }

  /// The target of a call of the API: a path below the documents, and what is done there, such as `:commit`.
  func target(_ path: String = "", _ verb: String = "") -> String {
    let root = "/v1/projects/\(project.percentEncoded)/databases/\(database.percentEncoded)/documents"
    let segments = path.pathParts().map(\.percentEncoded)
    return (path.isEmpty ? root : root + "/" + segments.joined(separator: "/")) + verb
  }
}

extension String {
  /// The text as one segment of a URL's path, or as one value of its query.
  var percentEncoded: String {
    var encoded: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"), UInt8(ascii: "("), UInt8(ascii: ")"):
        encoded.append(byte)
      default: encoded.append(contentsOf: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]])
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// What stands between slashes. By bytes: a slash with a combining mark behind it is one all the same.
  func pathParts(maxSplits: Int = .max, omittingEmpty: Bool = false) -> [String] {
    utf8.split(separator: UInt8(ascii: "/"), maxSplits: maxSplits, omittingEmptySubsequences: omittingEmpty)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// The path without its last part.
  var pathParent: String { pathParts(omittingEmpty: true).dropLast().joined(separator: "/") }

  /// Whether the bytes are the same.
  func hasBytes(of other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
