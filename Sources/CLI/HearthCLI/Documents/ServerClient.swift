import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FixtureTree
import Transport
import WireFormat

/// Talks to a running server in the REST dialect of the API.
final class ServerClient {
  /// The database it talks about.
  let database: DatabaseID
  private let http: HTTPClient
  private let token: String
  private let decoder = JSONMessageDecoder()
  private let parser = JSONDocument(bytesMax: ArrayElements.bytesMax)

  /// Takes the server and the database from options and environment; connects with the first request.
  /// - Throws: ``CommandFailure`` for an unusable URL or name.
  init(_ arguments: Arguments) throws {
    database = try DatabaseChoice.database(arguments)
    // In emulator mode `owner` is the admin of every project; a server for people's data takes signed tokens only.
    token = arguments.value("token") ?? "owner"
    guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw CommandFailure.usage("'--token' must be printable ASCII without blanks")
    }
    let url = arguments.value("server") ?? DatabaseChoice.environment("HEARTH_SERVER") ?? "http://127.0.0.1:8080"
    let (host, port) = try Self.address(url)
    http = HTTPClient(host: host, port: port)
  }

  /// Talks to the server at a URL, as the holder of a token; of no database.
  /// - Throws: ``CommandFailure`` for an unusable URL.
  init(url: String, token: String) throws {
    guard let database = DatabaseID(project: DatabaseChoice.defaultProject) else {
      throw CommandFailure.usage("'\(DatabaseChoice.defaultProject)' cannot name a project")
    }
    self.database = database
    self.token = token
    let (host, port) = try Self.address(url)
    http = HTTPClient(host: host, port: port)
  }

  /// Host and port of `http://host:port`, `host:port` or `host`.
  /// - Throws: ``CommandFailure`` for anything else.
  static func address(_ url: String) throws -> (host: String, port: Int) {
    if url.hasPrefix("https://") {
      throw CommandFailure.usage("'\(url)': https is not supported by this version yet; use http")
    }
    var rest = url.hasPrefix("http://") ? url.dropFirst("http://".count) : url[...]
    while rest.hasSuffix("/") { rest = rest.dropLast() }
    var port: Int? = 80
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
      throw CommandFailure.usage("'\(url)' is no server; write it as http://127.0.0.1:8080")
    }
    return (String(rest), port)
  }

  // MARK: Calls

  /// What the server's open databases hold, and its files, where it has opened them.
  func statistics() throws -> (databases: [StatsRow], files: FilesStatistics?) {
    guard let body = try call("GET", "/hearth/v1/stats") else { return ([], nil) }
    return try JSONText.read(body) { root in
      let files = root.member("files").map { files in
        FilesStatistics(FilesStatistics.columns.map { files.member($0)?.integer ?? 0 })
      }
      return ((root.member("databases")?.array ?? []).map(Self.statsRow), files)
    }
  }

  /// Who listens to the server's open databases.
  func listeners() throws -> [ListenerRow] {
    guard let body = try call("GET", "/hearth/v1/listeners") else { return [] }
    return try JSONText.read(body) { root in (root.member("listeners")?.array ?? []).map { ListenerRow($0) } }
  }

  private static func statsRow(_ row: JSONValue) -> StatsRow {
    let indexes = (row.member("indexes")?.array ?? []).map { index in
      IndexReport(
        text: index.member("index")?.text ?? "",
        state: index.member("state")?.text.flatMap { IndexReport.State(rawValue: $0) } ?? .ready,
        documents: index.member("documents")?.integer ?? 0)
    }
    return StatsRow(
      project: row.member("project")?.text ?? "", database: row.member("database")?.text ?? "",
      values: DatabaseStatistics.columns.map { row.member($0.name)?.integer ?? 0 }, indexes: indexes)
  }

  /// Which indexes the database has, as the server's JSON.
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

  /// What an index file must declare beside what `file` does; beside what the server has where that is empty.
  func suggestIndexes(adding file: [UInt8]) throws -> IndexSuggestion {
    let body = try call("POST", databaseTarget + "/indexes:suggest", file) ?? []
    return try JSONText.read(body) { root in
      IndexSuggestion(
        file: root.member("file")?.text ?? "", queries: root.member("queries")?.integer ?? 0,
        added: root.member("added")?.integer ?? 0, isComplete: root.member("complete")?.isTrue ?? true)
    }
  }

  private var databaseTarget: String { "/hearth/v1/" + Self.encode(database.name) }

  /// Deletes some thousand documents at and below a path, behind the last one of an earlier call; returns how many, and
  /// the last one where more are left.
  func deleteBelow(_ path: ResourcePath, behind last: String? = nil) throws -> (deleted: Int, last: String?) {
    var target = target(path, of: "/hearth/v1/")
    if let last { target += "?behind=" + Self.encode(last) }
    guard let body = try call("DELETE", target) else { return (0, nil) }
    return try JSONText.read(body) { root in
      (root.member("deleted")?.integer ?? 0, root.member("last")?.text)
    }
  }

  /// A document as the server answered it.
  struct Found {
    var key: DocumentKey
    var fields: EncodedFields
    /// `nil` for both where the document is missing and only has documents below it.
    var createTime: Timestamp?
    var updateTime: Timestamp?
  }

  /// A page of a listing.
  struct Page {
    var documents: [Found]
    var nextPageToken: String?
  }

  /// Reads a document; `nil` where there is none.
  func get(_ key: DocumentKey) throws -> Found? {
    let response = try call("GET", target(key.path), mayMiss: true)
    guard let body = response else { return nil }
    return try JSONText.read(body) { root in try found(root) }
  }

  /// Reads a page of a collection, with missing documents that have descendants where asked for.
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

  /// The ids of all collections directly below a document or the root.
  func collectionIDs(below parent: ResourcePath) throws -> [String] {
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

  /// Replaces a document, or creates it.
  func set(_ key: DocumentKey, _ fields: EncodedFields) throws -> Found {
    try patch(key, fields, query: "")
  }

  /// Changes the fields of a mask in a document that must exist.
  func update(_ key: DocumentKey, _ fields: EncodedFields, mask: FieldMask) throws -> Found {
    var query = "?currentDocument.exists=true"
    for path in mask.paths { query += "&updateMask.fieldPaths=\(Self.encode(path.text.utf8))" }
    return try patch(key, fields, query: query)
  }

  private func patch(_ key: DocumentKey, _ fields: EncodedFields, query: String) throws -> Found {
    var json = JSONWriter(.compact)
    json.beginObject()
    try append(fields, to: &json)
    json.endObject()
    let body = try call("PATCH", target(key.path) + query, json.bytes) ?? []
    return try JSONText.read(body) { root in try found(root) }
  }

  /// Deletes a document; a missing one is no error.
  func delete(_ key: DocumentKey) throws { _ = try call("DELETE", target(key.path)) }

  /// One change of ``commit(_:)``.
  enum Change {
    case set(DocumentKey, EncodedFields)
    case delete(DocumentKey)
  }

  /// Commits changes together. Returns for each whether it changed something, as far as the answer tells.
  func commit(_ changes: [Change]) throws -> [Bool] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("writes")
    json.beginArray()
    for change in changes {
      json.beginObject()
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
    // The writer cannot be lent to a closure that throws one type, so the outcome travels as a value.
    var failure: WireError?
    fields.withMap { map in
      do throws(WireError) { try DocumentJSON.append(fields: map, to: &json) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// A Document object.
  func found(_ value: JSONValue) throws -> Found {
    decoder.reset()
    let document = try decoder.document(value)
    let (_, key) = try ResourceName.document(document.name)
    func time(_ value: JSONValue?) -> Timestamp? { value?.text.flatMap { Timestamp(rfc3339: $0.utf8) } }
    return Found(
      key: key, fields: document.fields, createTime: time(value.member("createTime")),
      updateTime: time(value.member("updateTime")))
  }

  /// A Value object.
  func value(_ value: JSONValue) throws -> Value { try decoder.value(value, .operand) }

  /// Parses a text and lends its root, with buffers that are kept for the next.
  func parse(_ bytes: [UInt8], _ body: (JSONValue) throws -> Void) throws {
    try bytes.withUnsafeBytes { text in
      try parser.withParsed(text) { (root) throws(WireError) in Result { try body(root) } }
    }.get()
  }

  /// Where the server is, as errors name it.
  var address: String { http.address }

  /// The target of a document, a collection or the documents root.
  func target(_ path: ResourcePath, of dialect: String = "/v1/") -> String {
    var target = dialect + Self.encode(database.documentsRoot)
    for segment in path.segments { target += "/\(Self.encode(segment))" }
    return target
  }

  /// Percent-encodes a path, its slashes left as they are.
  static func encode(_ name: String) -> String {
    name.utf8.split(separator: UInt8(ascii: "/")).map { encode($0) }.joined(separator: "/")
  }

  /// Percent-encodes everything but unreserved characters.
  static func encode(_ bytes: some Sequence<UInt8>) -> String { PercentEncoding.encode(bytes) }

  /// Sends a request; returns the body, or `nil` for a missing document where that `mayMiss`.
  /// - Throws: ``CommandFailure`` with the server's words.
  func call(_ method: String, _ target: String, _ body: [UInt8] = [], mayMiss: Bool = false) throws -> [UInt8]? {
    let response: HTTPClient.Response
    do {
      response = try http.send(method, target, headers: headers(for: body), body: body)
    } catch { throw failure(error) }
    if (200...299).contains(response.status) { return response.body }
    let (status, message) = Self.error(response.body)
    if mayMiss, response.status == 404, status == "NOT_FOUND", message.hasPrefix("Document ") { return nil }
    throw refusal(response.status, response.body)
  }

  /// Sends a request as ``call(_:_:_:mayMiss:)`` does; returns the body, or `nil` where the answer is 404.
  /// - Throws: ``CommandFailure`` with the server's words.
  func find(_ method: String, _ target: String) throws -> [UInt8]? {
    let response: HTTPClient.Response
    do { response = try http.send(method, target, headers: headers(for: [])) } catch { throw failure(error) }
    if (200...299).contains(response.status) { return response.body }
    if response.status == 404 { return nil }
    throw refusal(response.status, response.body)
  }

  /// Sends a request whose body is handed over in pieces, until `next` gives none; returns the answer, which may also
  /// say that more is to come (308).
  /// - Throws: ``CommandFailure`` with the server's words; `HTTPClientError` where the connection breaks.
  func request(
    _ method: String, _ target: String, _ fields: [(name: String, value: String)], byteCount: Int, _ next: () -> [UInt8]
  ) throws -> HTTPClient.Response {
    let response: HTTPClient.Response
    do {
      response = try http.upload(method, target, headers: headers(for: []) + fields, bodyBytes: byteCount, next)
    } catch { throw failure(error) }
    guard (200...299).contains(response.status) || response.status == 308 else {
      throw refusal(response.status, response.body)
    }
    return response
  }

  /// Sends a request and hands on the pieces of its answer as they arrive.
  /// - Throws: ``CommandFailure`` with the server's words, and what `take` throws.
  func stream(_ method: String, _ target: String, _ body: [UInt8], _ take: ([UInt8]) throws -> Void) throws {
    try stream(method, target, body, []) { _, piece in try take(piece) }
  }

  /// Hands on the content of a target behind its first `offset` bytes, as it is stored.
  /// - Throws: ``CommandFailure`` with the server's words, `HTTPClientError` where the connection breaks, and what
  ///   `take` throws.
  func content(_ target: String, from offset: Int, _ take: ([UInt8]) throws -> Void) throws {
    // Content that was stored compressed is not to be unpacked on its way.
    var fields = [(name: "Accept-Encoding", value: "gzip")]
    if offset > 0 { fields.append((name: "Range", value: "bytes=\(offset)-")) }
    // Who does not take the range sends all of it.
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
    let status: Int
    do {
      status = try http.stream(method, target, headers: headers(for: body) + fields, body: body) { status, piece in
        guard (200...299).contains(status) else {
          refusalBody += piece
          return refusalBody.count < 1 << 20
        }
        do { try take(status, piece) } catch { failure = error }
        return failure == nil
      }
    } catch { throw self.failure(error) }
    if let failure { throw failure }
    guard (200...299).contains(status) else { throw refusal(status, refusalBody) }
  }

  private func headers(for body: [UInt8]) -> [(name: String, value: String)] {
    var headers = [(name: "Authorization", value: "Bearer \(token)"), (name: "Accept", value: "application/json")]
    if !body.isEmpty { headers.append((name: "Content-Type", value: "application/json")) }
    return headers
  }

  private func failure(_ error: HTTPClientError) -> any Error {
    guard case .notConnected = error else { return error }
    var failure = CommandFailure.failed(
      "no Hearth server answers at \(http.address); start one with `hearth serve`, or name another with --server")
    failure.mayPass = true
    return failure
  }

  private func refusal(_ code: Int, _ body: [UInt8]) -> CommandFailure {
    let (status, message) = Self.error(body)
    var failure = CommandFailure.failed(
      "\(http.address) answered \(code)\(status.isEmpty ? "" : " \(status)"): \(message)")
    failure.mayPass = CommandFailure.mayPass(httpStatus: code)
    failure.httpStatus = code
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
