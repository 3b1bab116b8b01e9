import Accounts
import DocumentModel
import Files
import Glibc
import WireFormat

/// The files of a running server, as its administrator: Cloud Storage's JSON API.
struct FilesClient {
  /// What verbs take that work on files.
  static let options = AdminServer.options + [FilePlace.bucketOption]

  /// What the server says of an object.
  struct Object {
    var bucket: String
    var name: String
    var size: Int
    var contentType: String
    var updated: Timestamp?
    /// The content's number.
    var generation: String
    /// Base64 of four bytes.
    var crc32c: String

    init(_ json: JSONValue) {
      bucket = json.member("bucket")?.text ?? ""
      name = json.member("name")?.text ?? ""
      size = json.member("size")?.text.flatMap { Int($0) } ?? 0
      contentType = json.member("contentType")?.text ?? ""
      updated = json.member("updated")?.text.flatMap { Timestamp(rfc3339: $0.utf8) }
      generation = json.member("generation")?.text ?? ""
      crc32c = json.member("crc32c")?.text ?? ""
    }

    /// As people write it.
    var text: String { "gs://\(bucket)/\(name)" }
  }

  /// One page of a listing, in the order of the names' bytes.
  struct Page {
    var objects: [Object]
    /// What names have in common up to the next slash; empty for a listing of all below.
    var folders: [String]
  }

  private let admin: AdminServer
  var server: ServerClient { admin.client }
  /// Sees to it that what fails for a while is tried again.
  let retries = Retries()
  /// How much of a file goes in one request, in bytes: what is larger goes in parts, each of which is on the server's
  /// disk when the next begins.
  var partBytes = 32 << 20
  /// The bucket of names without one.
  let bucket: String

  /// Takes the server, or the directory, and the bucket from options and environment; `makesDirectory` where it is
  /// missing.
  init(_ arguments: Arguments, makesDirectory: Bool = false) throws {
    if !makesDirectory, let path = arguments.value("data"), access(path, F_OK) != 0 {
      throw CommandFailure.failed("there is no data directory \(path)")
    }
    admin = try AdminServer(arguments)
    bucket = try FilePlace.bucket(arguments, project: admin.project)
  }

  /// Ends the server that was started for this command, if one was.
  func finish() { admin.finish() }

  /// Hands on all objects whose names begin with `prefix`, a page at a time; with `foldsFolders`, names that have a
  /// slash behind it are told as folders.
  /// - Throws: ``CommandFailure`` where there is no such bucket.
  func forEachPage(
    in bucket: String, prefix: String, foldsFolders: Bool = false, _ take: (Page) throws -> Void
  ) throws {
    var token: String?
    repeat {
      var target = "\(Self.root(bucket))/o?maxResults=1000&prefix=\(ServerClient.encode(prefix.utf8))"
      if foldsFolders { target += "&delimiter=%2F" }
      if let token { target += "&pageToken=\(ServerClient.encode(token.utf8))" }
      guard let body = try retries.run({ _ in try server.find("GET", target) }) else {
        throw Self.missing(bucket: bucket)
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

  /// What is known of an object; `nil` where there is none.
  func object(_ name: String, in bucket: String) throws -> Object? {
    guard let body = try retries.run({ _ in try server.find("GET", Self.target(name, in: bucket)) }) else { return nil }
    return try JSONText.read(body) { Object($0) }
  }

  /// Gives the content of an object to another name too.
  func copy(_ object: Object, to name: String, in bucket: String) throws {
    let target = Self.target(object.name, in: object.bucket)
      + "/copyTo/b/\(ServerClient.encode(bucket.utf8))/o/\(ServerClient.encode(name.utf8))"
      + "?sourceGeneration=\(object.generation)"
    _ = try retries.run { _ in try server.call("POST", target) }
  }

  /// Removes an object; returns whether there was one.
  func delete(_ name: String, in bucket: String) throws -> Bool {
    try retries.run { isAgain in
      // The one that failed may have removed it, with its answer lost.
      try server.find("DELETE", Self.target(name, in: bucket)) != nil || isAgain
    }
  }

  /// Makes a bucket where there is none of that name.
  func makeBucket(_ bucket: String) throws {
    try retries.run { _ in
      if try server.find("GET", Self.root(bucket)) != nil { return }
      let target = "/storage/v1/b?project=\(ServerClient.encode(admin.project.utf8))"
      _ = try server.call("POST", target, MapValue([("name", .string(bucket))]).json)
    }
  }

  /// That an object is not there.
  static func missing(_ name: String, in bucket: String) -> CommandFailure {
    .failed("there is no file gs://\(bucket)/\(name)")
  }

  private static func missing(bucket: String) -> CommandFailure {
    .failed("there is no bucket \(bucket); name another with --bucket, or as gs://BUCKET/…")
  }

  static func root(_ bucket: String) -> String { "/storage/v1/b/\(ServerClient.encode(bucket.utf8))" }

  static func target(_ name: String, in bucket: String) -> String {
    "\(root(bucket))/o/\(ServerClient.encode(name.utf8))"
  }
}
