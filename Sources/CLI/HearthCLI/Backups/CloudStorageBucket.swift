import DocumentModel

/// A bucket of Cloud Storage, or of a Hearth server, which has the same API.
final class CloudStorageBucket: BucketStore {
  private let bucket: String
  /// The prefix of all names, empty or with a slash at its end.
  private let prefix: String
  private let server: ServerClient
  private var files: FilesClient

  var text: String { "gs://\(bucket)/\(prefix)" }

  /// Creates a client that uses a connection of its own.
  init(_ bucket: String, prefix: String, _ server: ServerClient, retries: Retries = Retries()) {
    (self.bucket, self.prefix, self.server) = (bucket, prefix, server)
    files = FilesClient(server.place, project: server.database.project, retries)
    files.missingBucketAdvice = "create it first, or name another as gs://BUCKET/PREFIX"
  }

  func put(_ name: String, _ content: [UInt8]) throws {
    let target =
      "/upload/storage/v1/b/\(ServerClient.encode(bucket.utf8))/o?uploadType=media&name="
      + ServerClient.encode((prefix + name).utf8)
    try files.retries.run { _ in
      var isSent = false
      _ = try server.request(
        "POST", target, [(name: "Content-Type", value: "application/octet-stream")], byteCount: content.count
      ) {
        defer { isSent = true }
        return isSent ? [] : content
      }
    }
  }

  func get(_ name: String) throws -> [UInt8]? {
    try files.retries.run { _ in try server.find("GET", FilesClient.target(prefix + name, in: bucket) + "?alt=media") }
  }

  func list(_ prefix: String, _ take: ([BucketObject]) throws -> Void) throws {
    try files.forEachPage(in: bucket, prefix: self.prefix + prefix) { page in
      try take(
        page.objects.map {
          BucketObject(name: String($0.name.dropFirst(self.prefix.count)), size: $0.size, stored: $0.updated)
        })
    }
  }

  func remove(_ name: String) throws { _ = try files.delete(prefix + name, in: bucket) }
}
