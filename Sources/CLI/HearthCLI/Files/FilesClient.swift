import Accounts
import DocumentModel
import Files
import Glibc
import WireFormat

/// A client of a server's files with the rights of an administrator. It uses Cloud Storage's JSON API.
struct FilesClient {
  /// The options of the verbs for files.
  static let options = AdminServer.options + [FileLocation.bucketOption]

  /// The metadata of an object.
  struct Object {
    var bucket: String
    var name: String
    var size: Int
    var contentType: String
    var updated: Timestamp?
    /// The version of the content.
    var generation: String
    /// Base64 of four bytes.
    var crc32c: String
    /// The metadata that a client can set, as JSON with sorted names.
    var settings: [UInt8]

    init(_ json: JSONValue) {
      bucket = json.member("bucket")?.text ?? ""
      name = json.member("name")?.text ?? ""
      size = json.member("size")?.text.flatMap { Int($0) } ?? 0
      contentType = json.member("contentType")?.text ?? ""
      updated = json.member("updated")?.text.flatMap { Timestamp(rfc3339: $0.utf8) }
      generation = json.member("generation")?.text ?? ""
      crc32c = json.member("crc32c")?.text ?? ""
      settings = Self.settings(json)
    }

    /// Returns the metadata that a client can set. Custom metadata include the tokens of download URLs.
    private static func settings(_ json: JSONValue) -> [UInt8] {
      var settings = MapValue()
      let names: [StaticString] = [
        "contentType", "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage",
      ]
      for name in names { settings["\(name)"] = json.member(name)?.text.map(Value.string) }
      if case .object(var members)? = json.member("metadata")?.kind {
        var custom: [(String, String)] = []
        while let (key, value) = members.next() { custom.append((key.text, value.text ?? "")) }
        custom.sort { $0.0 < $1.0 }
        settings["metadata"] = .map(MapValue(custom.map { ($0.0, .string($0.1)) }))
      }
      return settings.json
    }

    /// The object's URL, such as `gs://media/photo.jpg`.
    var text: String { "gs://\(bucket)/\(name)" }
  }

  /// One page of a listing, in the order of the names' bytes.
  struct Page {
    var objects: [Object]
    /// The folders: names up to the next slash. Empty for a recursive listing.
    var folders: [String]
  }

  private let admin: AdminServer
  var server: ServerClient { admin.client }
  /// Repeats requests that fail for a temporary reason.
  let retries: Retries
  /// The maximum number of bytes of a file in one request. Larger files are sent in parts; each part is on the server's
  /// disk before the next is sent.
  var partBytes = 32 << 20
  /// The bucket for names that do not include one.
  let bucket: String
  /// The advice in the error for a bucket that does not exist.
  var missingBucketAdvice = "name another with --bucket or gs://BUCKET/NAME"

  /// Connects to the server, or opens the data directory, that options and environment name. `makesDirectory` creates a
  /// missing directory.
  /// - Throws: ``CommandFailure`` or `StorageError` if that fails.
  init(_ arguments: Arguments, makesDirectory: Bool = false) throws {
    if !makesDirectory, let path = arguments.value("data"), access(path, F_OK) != 0 {
      throw CommandFailure.failed("the data directory \(path) does not exist")
    }
    retries = Retries()
    admin = try AdminServer(arguments)
    bucket = try FileLocation.bucket(arguments, project: admin.project)
  }

  /// Creates a client of a server. The default bucket is that of the project.
  init(_ admin: AdminServer) {
    retries = Retries()
    self.admin = admin
    bucket = "\(admin.project).appspot.com"
  }

  /// Creates a client with another connection or for another server. Names must include their bucket.
  init(_ place: ServerClient.Place, project: String, _ retries: Retries) {
    self.retries = retries
    admin = AdminServer(ServerClient(place), project: project)
    bucket = ""
  }

  /// The project of the files.
  var project: String { admin.project }

  /// Stops the server that was started for this command, if any.
  func finish() { admin.finish() }

  /// Passes all objects whose names begin with `prefix` to `take`, a page at a time. With `foldsFolders`, names with a
  /// slash after the prefix are reported as folders.
  /// - Throws: ``CommandFailure`` if the bucket does not exist or a request fails, or the error of `take`.
  func forEachPage(
    in bucket: String, prefix: String, foldsFolders: Bool = false, _ take: (Page) throws -> Void
  ) throws {
    var token: String?
    repeat {
      var target = "\(Self.root(bucket))/o?maxResults=1000&prefix=\(ServerClient.encode(prefix.utf8))"
      if foldsFolders { target += "&delimiter=%2F" }
      if let token { target += "&pageToken=\(ServerClient.encode(token.utf8))" }
      guard let body = try retries.run({ _ in try server.find("GET", target) }) else {
        throw CommandFailure.failed("the bucket \(bucket) does not exist; \(missingBucketAdvice)")
      }
      let page = try JSONText.read(body) { root in
        token = root.member("nextPageToken")?.text
        return Page(
          objects: (root.member("items")?.array ?? []).map { Object($0) },
          folders: (root.member("prefixes")?.array ?? []).compactMap(\.text))
      }
      try take(page)
    } while token != nil
  }

  /// Returns the metadata of an object, or `nil` if it does not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func object(_ name: String, in bucket: String) throws -> Object? {
    guard let body = try retries.run({ _ in try server.find("GET", Self.target(name, in: bucket)) }) else { return nil }
    return try JSONText.read(body) { Object($0) }
  }

  /// Returns the metadata of an object in the form of Cloud Storage's API.
  /// - Throws: ``CommandFailure`` if the object does not exist or the request fails.
  func metadata(_ name: String, in bucket: String) throws -> JSONTree {
    guard let body = try retries.run({ _ in try server.find("GET", Self.target(name, in: bucket)) }) else {
      throw Self.missing(name, in: bucket)
    }
    return try JSONTree(parsing: body)
  }

  /// Sets fields of an object's metadata, given as members of an object of Cloud Storage's API.
  /// - Throws: ``CommandFailure`` if the request fails.
  func setMetadata(_ fields: MapValue, of name: String, in bucket: String) throws {
    guard !fields.entries.isEmpty else { return }
    _ = try retries.run { _ in try server.call("PATCH", Self.target(name, in: bucket), fields.json) }
  }

  /// Returns the names of the project's buckets.
  /// - Throws: ``CommandFailure`` if the request fails.
  func buckets() throws -> [String] {
    var names: [String] = []
    var token: String?
    repeat {
      var target = "/storage/v1/b?project=\(ServerClient.encode(admin.project.utf8))"
      if let token { target += "&pageToken=\(ServerClient.encode(token.utf8))" }
      let page = try JSONTree(parsing: try retries.run { _ in try server.call("GET", target) } ?? [])
      names += (page["items"]?.elements ?? []).compactMap { $0["name"]?.text }
      token = page["nextPageToken"]?.text
    } while token != nil
    return names
  }

  /// Copies an object on the server.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func copy(_ object: Object, to name: String, in bucket: String) throws {
    let target =
      Self.target(object.name, in: object.bucket)
      + "/copyTo/b/\(ServerClient.encode(bucket.utf8))/o/\(ServerClient.encode(name.utf8))"
      + "?sourceGeneration=\(object.generation)"
    _ = try retries.run { _ in try server.call("POST", target) }
  }

  /// Removes an object and returns whether it existed.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func delete(_ name: String, in bucket: String) throws -> Bool {
    try retries.run { isAgain in
      // A failed request may have removed the object, with only its response lost.
      try server.find("DELETE", Self.target(name, in: bucket)) != nil || isAgain
    }
  }

  /// Creates a bucket if it does not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func makeBucket(_ bucket: String) throws {
    try retries.run { _ in
      if try server.find("GET", Self.root(bucket)) != nil { return }
      let target = "/storage/v1/b?project=\(ServerClient.encode(admin.project.utf8))"
      _ = try server.call("POST", target, MapValue([("name", .string(bucket))]).json)
    }
  }

  /// Returns the error for a missing object.
  static func missing(_ name: String, in bucket: String) -> CommandFailure {
    .failed("the file gs://\(bucket)/\(name) does not exist")
  }

  static func root(_ bucket: String) -> String { "/storage/v1/b/\(ServerClient.encode(bucket.utf8))" }

  static func target(_ name: String, in bucket: String) -> String {
    "\(root(bucket))/o/\(ServerClient.encode(name.utf8))"
  }
}
