import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FixtureTree
import HearthServer
import Transport
import WebClient
import WireFormat

/// A client of a running server, over the REST API and Hearth's own administrative API.
final class ServerClient {
  /// The database of its requests.
  let database: DatabaseID
  /// The server, the database and the credential of its requests, for further connections.
  struct Place: Sendable {
    var database: DatabaseID
    fileprivate var host: String
    fileprivate var port: Int
    fileprivate var isSecure: Bool
    fileprivate var options: HTTPClient.Options
    fileprivate var credential: Credential
    /// The option that names the server, for advice.
    fileprivate var option = "--server"
    /// The folder of the admin socket, which must stay open while a client connects to the socket.
    fileprivate var socketFolder: AdminSocketFolder?
  }

  /// The server, for further connections. A client uses one connection, and serves one thread at a time.
  let place: Place
  private let http: HTTPClient
  /// The server that this client started for itself.
  private var started: AdminServer?
  private var credential: Credential { place.credential }
  private let decoder = JSONMessageDecoder()
  private let parser = JSONDocument(bytesMax: ArrayElements.bytesMax)

  /// Creates a client for the server and the database that options and environment name. It connects with the first
  /// request.
  /// - Throws: ``CommandFailure`` if the URL, the token, the key or a name is invalid.
  convenience init(_ arguments: Arguments) throws {
    let database = try DatabaseChoice.database(arguments)
    let url = DatabaseChoice.server(arguments)
    try self.init(
      Self.place(database, url, DatabaseChoice.authorities(arguments), try Credential(arguments, server: url)))
  }

  /// Creates a client for the server at a URL. Without a database, its requests concern none. The options may name a file
  /// of trusted certificates. Errors show `name` in place of the URL.
  /// - Throws: ``CommandFailure`` if the URL is invalid.
  convenience init(
    url: String, token: String, _ arguments: Arguments, database: DatabaseID? = nil, name: String? = nil
  ) throws {
    let project = DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
    guard let database = database ?? DatabaseID(project: project) else {
      throw CommandFailure.usage("'\(project)' is not a valid project ID")
    }
    var place = try Self.place(database, url, DatabaseChoice.authorities(arguments), Credential(token: token))
    place.options.name = name
    self.init(place)
  }

  /// Creates a client for the server at a URL that an option named, with the credential that options and environment
  /// name.
  /// - Throws: ``CommandFailure`` if the URL, the token or the key is invalid.
  convenience init(url: String, _ arguments: Arguments, option: String) throws {
    guard let database = DatabaseID(project: DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject) else {
      throw CommandFailure.usage("the name of the project is not valid")
    }
    var place = try Self.place(
      database, url, DatabaseChoice.authorities(arguments), try Credential(arguments, server: url))
    place.option = option
    self.init(place)
  }

  /// Creates a client for the server that `--from` names.
  /// - Throws: ``CommandFailure`` if the URL or the credential is invalid.
  convenience init(from arguments: Arguments) throws {
    let url = arguments.value("from") ?? ""
    let credential = try Credential(arguments, server: url, prefix: "from-")
    let project = arguments.value("from-project") ?? DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
    guard let database = DatabaseID(project: project) else {
      throw CommandFailure.usage("'\(project)' is not a valid project ID")
    }
    var place = try Self.place(database, url, DatabaseChoice.authorities(arguments), credential)
    place.option = "--from"
    self.init(place)
  }

  /// Creates a client for the server or the data directory that options and environment name. If no server uses the
  /// directory, it starts one in this process.
  /// - Throws: ``CommandFailure``, `HearthError` or `StorageError` if that fails.
  convenience init(ofServerOrDirectory arguments: Arguments) throws {
    guard arguments.has("data") else {
      try self.init(arguments)
      return
    }
    let admin = try AdminServer(arguments)
    self.init(admin.client.place)
    started = admin
  }

  /// Creates a client for the server that listens on the admin socket of a folder. Without a credential, it is an
  /// administrator.
  convenience init(_ socketFolder: AdminSocketFolder, _ database: DatabaseID, _ credential: Credential) {
    var options = HTTPClient.Options()
    options.unixSocket = .init(path: socketFolder.socketPath, name: socketFolder.path)
    self.init(
      Place(
        database: database, host: "localhost", port: 80, isSecure: false, options: options, credential: credential,
        socketFolder: socketFolder))
  }

  deinit { started?.finish() }

  /// Creates a client with a connection of its own.
  init(_ place: Place) {
    database = place.database
    self.place = place
    http = HTTPClient(host: place.host, port: place.port, isSecure: place.isSecure, options: place.options)
  }

  private static func place(
    _ database: DatabaseID, _ url: String, _ authoritiesFile: String?, _ credential: Credential
  ) throws -> Place {
    let (host, port, isSecure) = try address(url)
    var options = HTTPClient.Options()
    options.authoritiesFile = authoritiesFile
    return Place(
      database: database, host: host, port: port, isSecure: isSecure, options: options, credential: credential)
  }

  /// Returns a URL of a server with its scheme and without a trailing slash, as keys contain it.
  static func normalized(_ url: String) -> String {
    var text = url.contains("://") ? url : "http://\(url)"
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }

  /// Returns the parts of `https://host:port`, `http://host:port`, `host:port` or `host`. The last two mean HTTP.
  /// - Throws: ``CommandFailure`` if the text has another form.
  static func address(_ url: String) throws -> (host: String, port: Int, isSecure: Bool) {
    let isSecure = url.hasPrefix("https://")
    var rest =
      isSecure ? url.dropFirst("https://".count) : url.hasPrefix("http://") ? url.dropFirst("http://".count) : url[...]
    while rest.hasSuffix("/") { rest = rest.dropLast() }
    var port: Int? = isSecure ? 443 : 80
    if let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
      port = Int(rest[rest.index(after: colon)...])
      rest = rest[..<colon]
    }
    if rest.hasPrefix("["), rest.hasSuffix("]") { rest = rest.dropFirst().dropLast() }
    let isName =
      !rest.isEmpty
      && rest.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || [0x2D, 0x2E, 0x3A, 0x5F].contains(byte)
      }
    guard isName, let port, (1...65535).contains(port) else {
      throw CommandFailure.usage("'\(url)' is not the URL of a server; write it as http://127.0.0.1:8080")
    }
    return (String(rest), port, isSecure)
  }

  // MARK: Calls

  /// Returns the indexes of the database, as the server's JSON.
  /// - Throws: ``CommandFailure`` if the request fails.
  func indexes() throws -> [UInt8] {
    var body = try call("GET", databaseTarget + "/indexes") ?? []
    if body.last != UInt8(ascii: "\n") { body.append(UInt8(ascii: "\n")) }
    return body
  }

  /// An index file for the queries that the server has seen.
  struct IndexSuggestion {
    var file: String
    var queries: Int
    var added: Int
    var isComplete: Bool
  }

  /// Asks the server for the index file that its queries need in addition to `file`, or, if that is empty, in addition
  /// to the indexes that the server has.
  /// - Throws: ``CommandFailure`` if the request fails.
  func suggestIndexes(adding file: [UInt8]) throws -> IndexSuggestion {
    let body = try call("POST", databaseTarget + "/indexes:suggest", file) ?? []
    return try JSONText.read(body) { root in
      IndexSuggestion(
        file: root.member("file")?.text ?? "", queries: root.member("queries")?.integer ?? 0,
        added: root.member("added")?.integer ?? 0, isComplete: root.member("complete")?.isTrue ?? true)
    }
  }

  /// The path of the administrative API of the database.
  var databaseTarget: String { "/hearth/v1/" + Self.encode(database.name) }

  /// Deletes up to a few thousand documents at and below a path, after the last one of an earlier call. Returns their
  /// number, and the last one if more documents remain.
  /// - Throws: ``CommandFailure`` if the request fails.
  func deleteBelow(_ path: ResourcePath, after last: String? = nil) throws -> (deleted: Int, last: String?) {
    var target = target(path, below: "/hearth/v1/")
    if let last { target += "?behind=" + Self.encode(last) }
    guard let body = try call("DELETE", target) else { return (0, nil) }
    return try JSONText.read(body) { root in
      (root.member("deleted")?.integer ?? 0, root.member("last")?.text)
    }
  }

  /// A document of a response.
  struct Found {
    var key: DocumentKey
    var fields: EncodedFields
    /// Both times are `nil` if the document does not exist and only has documents below it.
    var createTime: Timestamp?
    var updateTime: Timestamp?
  }

  /// A page of a listing.
  struct Page {
    var documents: [Found]
    var nextPageToken: String?
  }

  /// Returns a document, or `nil` if it does not exist.
  /// - Throws: ``CommandFailure`` if the request fails.
  func get(_ key: DocumentKey, at readTime: Timestamp? = nil) throws -> Found? {
    let time = readTime.map { "?readTime=\(Self.encode($0.description.utf8))" } ?? ""
    let response = try call("GET", target(key.path) + time, mayMiss: true)
    guard let body = response else { return nil }
    return try JSONText.read(body) { root in try found(root) }
  }

  /// Returns a page of a collection; with `showMissing`, also missing documents that have descendants.
  /// - Throws: ``CommandFailure`` if the request fails.
  func list(
    _ collection: ResourcePath, pageSize: Int, pageToken: String? = nil, showMissing: Bool = false,
    withFields: Bool = true
  ) throws -> Page {
    var query = "?pageSize=\(pageSize)"
    if let pageToken { query += "&pageToken=\(Self.encode(pageToken.utf8))" }
    if showMissing { query += "&showMissing=true" }
    if !withFields { query += "&mask.fieldPaths=__name__" }
    let body = try call("GET", target(collection) + query) ?? []
    return try JSONText.read(body) { root in
      let documents = try (root.member("documents")?.array ?? []).map { try found($0) }
      let token = root.member("nextPageToken")?.text
      return Page(documents: documents, nextPageToken: token?.isEmpty == false ? token : nil)
    }
  }

  /// Returns the IDs of all collections directly below a document or the root.
  /// - Throws: ``CommandFailure`` if a request fails.
  func collectionIDs(below parent: ResourcePath, at readTime: Timestamp? = nil) throws -> [String] {
    var ids: [String] = []
    var token: String?
    repeat {
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("pageSize")
      json.number(1000)
      if let token {
        json.key("pageToken")
        json.string(token)
      }
      json.append(readTime: readTime)
      json.endObject()
      let body = try call("POST", target(parent) + ":listCollectionIds", json.bytes) ?? []
      token = try JSONText.read(body) { root in
        ids += (root.member("collectionIds")?.array ?? []).compactMap(\.text)
        let next = root.member("nextPageToken")?.text
        return next?.isEmpty == false ? next : nil
      }
    } while token != nil
    return ids
  }

  /// Replaces or creates a document.
  /// - Throws: ``CommandFailure`` if the request fails.
  func set(_ key: DocumentKey, _ fields: EncodedFields) throws -> Found {
    try patch(key, fields, query: "")
  }

  /// Creates a document of a collection. The server chooses its ID.
  /// - Throws: ``CommandFailure`` if the request fails.
  func add(to collection: ResourcePath, _ fields: EncodedFields) throws -> Found {
    try write("POST", target(collection), fields)
  }

  /// Changes the fields of a mask in a document that must exist.
  /// - Throws: ``CommandFailure`` if the request fails.
  func update(_ key: DocumentKey, _ fields: EncodedFields, mask: FieldMask) throws -> Found {
    var query = "?currentDocument.exists=true"
    for path in mask.paths { query += "&updateMask.fieldPaths=\(Self.encode(path.text.utf8))" }
    return try patch(key, fields, query: query)
  }

  private func patch(_ key: DocumentKey, _ fields: EncodedFields, query: String) throws -> Found {
    try write("PATCH", target(key.path) + query, fields)
  }

  private func write(_ method: String, _ target: String, _ fields: EncodedFields) throws -> Found {
    var json = JSONWriter(.compact)
    json.beginObject()
    try append(fields, to: &json)
    json.endObject()
    let body = try call(method, target, json.bytes) ?? []
    return try JSONText.read(body) { root in try found(root) }
  }

  /// Deletes a document. Deleting a missing document is not an error.
  /// - Throws: ``CommandFailure`` if the request fails.
  func delete(_ key: DocumentKey) throws { _ = try call("DELETE", target(key.path)) }

  /// One change of ``commit(_:)``.
  enum Change {
    case set(DocumentKey, EncodedFields)
    case delete(DocumentKey)
  }

  /// Commits changes atomically, if all documents fulfill the conditions, one for each change or none. Returns for each
  /// change whether it changed the document, as far as the response shows it.
  /// - Throws: ``CommandFailure`` if the request fails.
  func commit(_ changes: [Change], if conditions: [Condition] = []) throws -> [Bool] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("writes")
    json.beginArray()
    for (index, change) in changes.enumerated() {
      json.beginObject()
      if index < conditions.count { json.append(conditions[index]) }
      switch change {
      case .set(let key, let fields):
        json.key("update")
        json.beginObject()
        json.key("name")
        json.string(ResourceName(database: database, path: key.path).text)
        try append(fields, to: &json)
        json.endObject()
      case .delete(let key):
        json.key("delete")
        json.string(ResourceName(database: database, path: key.path).text)
      }
      json.endObject()
    }
    json.endArray()
    json.endObject()
    let body = try call("POST", "/v1/\(Self.encode(database.documentsRoot)):commit", json.bytes) ?? []
    return try JSONText.read(body) { root in
      let time = root.member("commitTime")?.text
      return (root.member("writeResults")?.array ?? []).map { $0.member("updateTime")?.text == time }
    }
  }

  // MARK: Pieces

  private func append(_ fields: EncodedFields, to json: inout JSONWriter) throws {
    json.key("fields")
    // The closure must not throw, so its error is kept in a variable.
    var failure: WireError?
    fields.withMap { map in
      do throws(WireError) { try DocumentJSON.append(fields: map, to: &json) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Decodes a Document object.
  /// - Throws: `WireError` or `ModelError` if the object is malformed.
  func found(_ value: JSONValue) throws -> Found {
    decoder.reset()
    let document = try decoder.document(value)
    let (_, key) = try ResourceName.document(document.name)
    func time(_ value: JSONValue?) -> Timestamp? { value?.text.flatMap { Timestamp(rfc3339: $0.utf8) } }
    return Found(
      key: key, fields: document.fields, createTime: time(value.member("createTime")),
      updateTime: time(value.member("updateTime")))
  }

  /// Decodes a Value object.
  /// - Throws: `WireError` if the object is malformed.
  func value(_ value: JSONValue) throws -> Value { try decoder.value(value, .operand) }

  /// Parses a text and passes its root to `body`. The parser's buffers are reused by the next call.
  /// - Throws: `WireError` if the text is not valid JSON, or the error of `body`.
  func parse(_ bytes: [UInt8], _ body: (JSONValue) throws -> Void) throws {
    try bytes.withUnsafeBytes { text in
      try parser.withParsed(text) { (root) throws(WireError) in Result { try body(root) } }
    }.get()
  }

  /// The server's address, as error messages name it.
  var address: String { http.address }

  /// Returns the request target of a document, a collection or the documents root.
  func target(_ path: ResourcePath, below prefix: String = "/v1/") -> String {
    var target = prefix + Self.encode(database.documentsRoot)
    for segment in path.segments { target += "/\(Self.encode(segment))" }
    return target
  }

  /// Percent-encodes a path, except for its slashes.
  static func encode(_ name: String) -> String {
    name.utf8.split(separator: UInt8(ascii: "/")).map { encode($0) }.joined(separator: "/")
  }

  /// Percent-encodes everything but unreserved characters.
  static func encode(_ bytes: some Sequence<UInt8>) -> String { PercentEncoding.encode(bytes) }

  /// Sends a request and returns the body of the response, or `nil` if `mayMiss` and the document does not exist.
  /// - Throws: ``CommandFailure`` with the server's message if the request fails.
  func call(_ method: String, _ target: String, _ body: [UInt8] = [], mayMiss: Bool = false) throws -> [UInt8]? {
    let response = try signedIn { headers throws(HTTPClientError) in
      try http.send(method, target, headers: headers + Self.type(of: body), body: body.isEmpty ? nil : body)
    }
    if (200...299).contains(response.status) { return response.body }
    let (status, message) = Self.error(response.body)
    if mayMiss, response.status == 404, status == "NOT_FOUND", message.hasPrefix("Document ") { return nil }
    throw refusal(response, response.body)
  }

  /// Sends a request and returns the body of the response, or `nil` if its status is 404.
  /// - Throws: ``CommandFailure`` with the server's message if the request fails otherwise.
  func find(_ method: String, _ target: String) throws -> [UInt8]? {
    let response = try signedIn { headers throws(HTTPClientError) in try http.send(method, target, headers: headers) }
    if (200...299).contains(response.status) { return response.body }
    if response.status == 404 { return nil }
    throw refusal(response, response.body)
  }

  /// Sends a request and returns the response, whose status may also be 308 (the server expects more of an upload).
  /// `next` supplies the body in pieces and returns an empty piece at the end.
  /// - Throws: ``CommandFailure`` with the server's message if the request fails; `HTTPClientError` if the connection
  ///   breaks.
  func request(
    _ method: String, _ target: String, _ fields: [(name: String, value: String)], byteCount: Int, _ next: () -> [UInt8]
  ) throws -> HTTPClient.Response {
    let token = try credential.token()
    let response: HTTPClient.Response
    do {
      response = try http.upload(method, target, headers: headers(token) + fields, bodyBytes: byteCount, next)
    } catch { throw failure(error) }
    guard (200...299).contains(response.status) || response.status == 308 else {
      var refusal = refusal(response, response.body)
      // `next` cannot start again, but the caller can.
      if response.status == 401, try credential.renew(after: token) { refusal.isTemporary = true }
      throw refusal
    }
    return response
  }

  /// Sends a request and passes the pieces of the response's body to `take` as they arrive.
  /// - Throws: ``CommandFailure`` with the server's message if the request fails, or the error of `take`.
  func stream(_ method: String, _ target: String, _ body: [UInt8], _ take: ([UInt8]) throws -> Void) throws {
    try stream(method, target, body, []) { _, piece in try take(piece) }
  }

  /// Passes the stored content of a target to `take`, starting after its first `offset` bytes.
  /// - Throws: ``CommandFailure`` with the server's message if the request fails, `HTTPClientError` if the connection
  ///   breaks, or the error of `take`.
  func content(_ target: String, from offset: Int, _ take: ([UInt8]) throws -> Void) throws {
    // Accept gzip, so that the server does not decompress content that is stored compressed.
    var fields = [(name: "Accept-Encoding", value: "gzip")]
    if offset > 0 { fields.append((name: "Range", value: "bytes=\(offset)-")) }
    // A server that ignores the range sends the whole content: skip its start.
    var unwanted = offset
    try stream("GET", target, [], fields) { status, piece in
      if status == 206 { unwanted = 0 }
      let skipped = min(unwanted, piece.count)
      unwanted -= skipped
      if skipped < piece.count { try take(skipped == 0 ? piece : Array(piece[skipped...])) }
    }
  }

  private func stream(
    _ method: String, _ target: String, _ body: [UInt8], _ fields: [(name: String, value: String)],
    _ take: (Int, [UInt8]) throws -> Void
  ) throws {
    var failure: (any Error)?
    var refusalBody: [UInt8] = []
    let response = try signedIn { headers throws(HTTPClientError) in
      refusalBody.removeAll()
      return try http.stream(
        method, target, headers: headers + Self.type(of: body) + fields, body: body.isEmpty ? nil : body
      ) { status, piece in
        guard (200...299).contains(status) else {
          refusalBody += piece
          return refusalBody.count < 1 << 20
        }
        do { try take(status, piece) } catch { failure = error }
        return failure == nil
      }
    }
    if let failure { throw failure }
    guard (200...299).contains(response.status) else { throw refusal(response, refusalBody) }
  }

  /// Sends a request with a token, and once more with another token if the server rejects the first one.
  private func signedIn(
    _ send: ([(name: String, value: String)]) throws(HTTPClientError) -> HTTPClient.Response
  ) throws -> HTTPClient.Response {
    let token = try credential.token()
    do throws(HTTPClientError) {
      let response = try send(headers(token))
      guard response.status == 401 else { return response }
      let isRenewed = Result { try credential.renew(after: token) }
      guard case .success(true) = isRenewed, let renewed = try? credential.token() else { return response }
      return try send(headers(renewed))
    } catch { throw failure(error) }
  }

  private func headers(_ token: String) -> [(name: String, value: String)] {
    var headers = [(name: "Accept", value: "application/json")]
    // Over the admin socket, a request without a token is an administrator's.
    if !token.isEmpty { headers.insert((name: "Authorization", value: "Bearer \(token)"), at: 0) }
    // Identity Toolkit rejects a person's token without a project to bill.
    if credential.isPersonal, WebHost.isGoogles(place.host), place.host.hasPrefix("identitytoolkit") {
      headers.append((name: "X-Goog-User-Project", value: database.project))
    }
    // A server with several projects chooses one by this field if the path names none.
    if !WebHost.isGoogles(place.host) {
      headers.append((name: "google-cloud-resource-prefix", value: database.name))
    }
    return headers
  }

  private static func type(of body: [UInt8]) -> [(name: String, value: String)] {
    body.isEmpty ? [] : [(name: "Content-Type", value: "application/json")]
  }

  /// Returns the error with a text that says what to do, or the error itself if its text does.
  private func failure(_ error: HTTPClientError) -> any Error {
    switch error {
    case .notConnected:
      var failure = CommandFailure.failed(
        WebHost.isGoogles(http.address) || place.socketFolder != nil
          ? error.description
          : "no Hearth server responds at \(http.address); start one with `hearth serve`, or name another with "
            + place.option
      )
      failure.isTemporary = true
      return failure
    case .certificateRejected(_, .notTrusted):
      return CommandFailure.failed("\(error); if you trust its authority, name the authority's file with --cacert")
    case .certificateRejected(_, .otherName):
      return CommandFailure.failed("\(error); name the server as its certificate does: \(place.option) https://NAME")
    case .certificateRejected(_, .expired), .certificateRejected(_, .notYetValid):
      return CommandFailure.failed("\(error); renew it, or correct the clock of this machine")
    case .authoritiesUnusable(.some): return CommandFailure.data(error.description)
    case .authoritiesUnusable(nil): return CommandFailure.failed("\(error), or name a file of your own with --cacert")
    case .notTLS: return CommandFailure.failed("\(error); write its URL with http://")
    case .malformed where !http.isSecure:
      return CommandFailure.failed("\(error); if the server uses TLS, write its URL with https://")
    default: return error
    }
  }

  private func refusal(_ response: HTTPClient.Response, _ body: [UInt8]) -> CommandFailure {
    let code = response.status
    let (status, message) = Self.error(body)
    var text = "\(http.address) responded \(code)\(status.isEmpty ? "" : " \(status)"): \(message)"
    if (300...399).contains(code), let place = response.header("location") {
      text += "\nthe server redirects to \(place); if you trust that server, name it with \(self.place.option)"
    }
    if let advice = ServerAdvice.text(httpStatus: code, of: http.address, isDefaultToken: credential.isDefault) {
      text += "\n\(advice)"
      if code == 401, let reason = credential.ignoredKey {
        text += "\nGOOGLE_APPLICATION_CREDENTIALS was ignored: \(reason)"
      }
    }
    var failure = CommandFailure.failed(text)
    failure.isTemporary = CommandFailure.isTemporary(httpStatus: code)
    failure.httpStatus = code
    failure.retryAfterMilliseconds = response.header("retry-after").flatMap { Int($0) }.map { $0 * 1000 }
    return failure
  }

  private static func error(_ body: [UInt8]) -> (status: String, message: String) {
    let parts = try? JSONText.read(body) { root in
      let error = (root.array.first ?? root).member("error")
      return (error?.member("status")?.text ?? "", error?.member("message")?.text ?? "")
    }
    if let parts, !parts.1.isEmpty { return parts }
    return ("", String(decoding: body.prefix(300), as: UTF8.self).trimmingNewlines)
  }
}

extension String {
  fileprivate var trimmingNewlines: String {
    var text = self[...]
    while text.last?.isNewline == true { text = text.dropLast() }
    return String(text)
  }
}
