public import Foundation

/// A client of one database on a Hearth server.
///
///     let hearth = Hearth(url: URL(string: "https://db.example.com")!, project: "demo")
///     try await hearth.auth.signInAnonymously()
///     try await hearth.document("users/ann").set(Person(name: "Ann"))
///     for try await users in hearth.collection("users").where("age", .greaterThan, 17).snapshots(as: Person.self) {
///       print(users.documents.compactMap(\.data?.name))
///     }
///
/// `Hearth` is a value and cheap to copy; copies share connections and the signed-in user. Every request throws
/// ``HearthClientError`` if the server rejects it or cannot be reached, and `CancellationError` if its task is
/// cancelled. Requests that encode or decode types throw `EncodingError` or `DecodingError` if a type does not
/// match.
public struct Hearth: Sendable {
  /// How requests identify their caller.
  public enum Credentials: Sendable {
    /// The user that ``Hearth/auth`` signs in. Before sign-in, requests are unauthenticated.
    case signedIn
    /// A fixed token, such as `owner` for a server in emulator mode.
    case bearer(String)
    /// A function that provides the token of each request. `isRefused` is `true` if the server rejected the last
    /// token. If the function returns `nil`, the request is unauthenticated.
    case provider(@Sendable (_ isRefused: Bool) async throws -> String?)
  }

  /// The project ID.
  public let project: String
  /// The database ID.
  public let database: String
  let connection: ClientConnection

  /// Sign-in for users.
  public var auth: Authentication { connection.auth }

  /// A client of the server at a URL. The initializer sends nothing.
  /// - Parameter apiKey: the key that sign-in requests send. Hearth accepts any key.
  public init(
    url: URL, project: String, database: String = "(default)", credentials: Credentials = .signedIn,
    apiKey: String = "hearth"
  ) {
    self.init(
      transport: URLSessionTransport(url: url), project: project, database: database, credentials: credentials,
      apiKey: apiKey)
  }

  /// A client of a server that `transport` reaches.
  public init(
    transport: any HearthTransport, project: String, database: String = "(default)",
    credentials: Credentials = .signedIn, apiKey: String = "hearth"
  ) {
    self.init(transport, project, database, credentials, apiKey, now: { Date() })
  }

  /// A client with its own clock, for tests.
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

  /// Returns a reference to the document at a path, such as `users/ann`. The document need not exist.
  public func document(_ path: String) -> DocumentReference { DocumentReference(self, path: path) }

  /// Returns a reference to the collection at a path, such as `users` or `users/ann/notes`.
  public func collection(_ path: String) -> CollectionReference { CollectionReference(self, path: path) }

  /// Returns a query of all collections with this ID, at any depth.
  public func collectionGroup(_ id: String) -> Query { Query(self, parent: "", collectionID: id, isGroup: true) }

  /// Returns a client of another database on this server, with the same signed-in user.
  public func database(_ database: String, of project: String? = nil) -> Hearth {
    Hearth(connection, project: project ?? self.project, database: database)
  }

  // MARK: - Names and targets

  /// `projects/P/databases/D/documents`
  var documentsName: String { "projects/\(project)/databases/\(database)/documents" }

  /// Returns the target of a request: the path below the documents root, and a verb such as `:commit`.
  func target(_ path: String = "", _ verb: String = "") -> String {
    let root = "/v1/projects/\(project.percentEncoded)/databases/\(database.percentEncoded)/documents"
    let segments = path.pathParts().map(\.percentEncoded)
    return (path.isEmpty ? root : root + "/" + segments.joined(separator: "/")) + verb
  }
}

extension String {
  /// The text percent-encoded, as one segment of a URL's path or one value of its query.
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

  /// Returns the parts of a path. Splits bytes, because a slash and a combining mark are one Character.
  func pathParts(maxSplits: Int = .max, omittingEmpty: Bool = false) -> [String] {
    utf8.split(separator: UInt8(ascii: "/"), maxSplits: maxSplits, omittingEmptySubsequences: omittingEmpty)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// The path without its last part.
  var pathParent: String { pathParts(omittingEmpty: true).dropLast().joined(separator: "/") }

  /// Whether two strings have the same bytes.
  func hasBytes(of other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
