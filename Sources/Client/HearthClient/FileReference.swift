public import Foundation

/// A file beside the documents, whether there is one or not.
///
///     let avatar = hearth.file("avatars/ann.png")
///     try await avatar.upload(png, contentType: "image/png")
///     let data = try await avatar.download()
///
/// Rules for files (`service firebase.storage`) decide who may do so; without any, only administrators may.
public struct FileReference: Sendable, CustomStringConvertible {
  /// The name within the bucket, such as `avatars/ann.png`.
  public let path: String
  /// The bucket.
  public let bucket: String
  private let connection: ClientConnection

  /// Parts of an upload from disk are of this size, in bytes: what a broken connection costs, and what is in memory.
  private static let partBytes = 4 << 20
  /// How often a part is sent before the upload fails.
  private static let attemptsMax = 5

  init(_ connection: ClientConnection, bucket: String, path: String) {
    (self.connection, self.bucket, self.path) = (connection, bucket, path)
  }

  /// The path.
  public var description: String { path }

  /// Stores content under the name, in place of what was there.
  /// - Parameter metadata: names and values of the app's own.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func upload(
    _ content: Data, contentType: String = "application/octet-stream", metadata: [String: String] = [:]
  ) async throws -> FileMetadata {
    let boundary = "hearth-\(UUID().uuidString)"
    var body = Data("--\(boundary)\r\nContent-Type: application/json; charset=utf-8\r\n\r\n".utf8)
    body.append(Self.description(contentType, metadata).data)
    body.append(Data("\r\n--\(boundary)\r\nContent-Type: \(contentType)\r\n\r\n".utf8))
    body.append(content)
    body.append(Data("\r\n--\(boundary)--\r\n".utf8))
    let headers = [
      "X-Goog-Upload-Protocol": "multipart", "Content-Type": "multipart/related; boundary=\(boundary)",
    ]
    return try FileMetadata(
      try await connection.send(HearthRequest("POST", uploadTarget, headers: headers, body: body)))
  }

  /// Stores a file of this device, in parts: one that is lost on the way is sent again, and little is in memory.
  /// - Throws: as ``Hearth`` says, and what reading the file throws.
  @discardableResult
  public func upload(
    from file: URL, contentType: String = "application/octet-stream", metadata: [String: String] = [:]
  ) async throws -> FileMetadata {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    let size = try handle.seekToEnd()
    let started = try await connection.send(
      HearthRequest(
        "POST", uploadTarget,
        headers: [
          "X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start", "Content-Type": "application/json",
          "X-Goog-Upload-Header-Content-Type": contentType, "X-Goog-Upload-Header-Content-Length": String(size),
        ], body: Self.description(contentType, metadata).data))
    // The server names itself in the URL as it was reached; the way there is the transport's.
    guard let url = started.headers["x-goog-upload-url"], let target = url.range(of: "/v0/b/") else {
      throw HearthClientError.unreadable("an upload without a URL")
    }
    return try await send(handle, of: file, size: size, to: String(url[target.lowerBound...]))
  }

  private func send(
    _ handle: FileHandle, of file: URL, size: UInt64, to target: String
  ) async throws -> FileMetadata {
    var offset: UInt64 = 0
    var backoff = Backoff(firstSeconds: 0.2, maxSeconds: 10)
    var attempt = 1
    while true {
      do {
        try handle.seek(toOffset: offset)
        let part = try handle.read(upToCount: Self.partBytes) ?? Data()
        let isLast = offset + UInt64(part.count) >= size
        guard isLast || !part.isEmpty else {
          throw HearthClientError(.invalidArgument, "\(file.path) became shorter while it was sent.")
        }
        let response = try await connection.send(
          HearthRequest(
            "POST", target,
            headers: [
              "X-Goog-Upload-Command": isLast ? "upload, finalize" : "upload", "X-Goog-Upload-Offset": String(offset),
              "Content-Type": "application/octet-stream",
            ], body: part))
        if isLast { return try FileMetadata(response) }
        offset += UInt64(part.count)
        attempt = 1
        backoff.reset()
      } catch let error as HearthClientError where error.isRetryable && attempt < Self.attemptsMax {
        attempt += 1
        try await backoff.wait()
        // What arrived of the part stays there.
        let query = HearthRequest("POST", target, headers: ["X-Goog-Upload-Command": "query"])
        if let standing = try? await connection.send(query) {
          offset = standing.headers["x-goog-upload-size-received"].flatMap { UInt64($0) } ?? offset
        }
      }
    }
  }

  /// Reads the content.
  /// - Throws: ``HearthClientError/Code/notFound`` where there is none, else as ``Hearth`` says.
  public func download() async throws -> Data { try await connection.send(HearthRequest("GET", contentTarget)).body }

  /// Writes the content into a file of this device, in place of what is there; little is in memory.
  /// - Throws: as ``Hearth`` says, and what writing throws; then the file is what it was.
  public func download(to file: URL) async throws {
    let part = file.deletingLastPathComponent().appendingPathComponent(".\(UUID().uuidString).part")
    defer { try? FileManager.default.removeItem(at: part) }
    try await connection.download(HearthRequest("GET", contentTarget), to: part)
    try Task.checkCancellation()
    // In one step: whoever opens the file finds the old content or the new.
    guard rename(part.path, file.path) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  /// Reads what is known of the file.
  /// - Throws: ``HearthClientError/Code/notFound`` where there is none, else as ``Hearth`` says.
  public func metadata() async throws -> FileMetadata {
    try FileMetadata(try await connection.send(HearthRequest("GET", target)))
  }

  /// Deletes the file.
  /// - Throws: ``HearthClientError/Code/notFound`` where there is none, else as ``Hearth`` says.
  public func delete() async throws { _ = try await connection.send(HearthRequest("DELETE", target)) }

  private var collectionTarget: String { "/v0/b/\(bucket.percentEncoded)/o" }
  private var target: String { "\(collectionTarget)/\(path.percentEncoded)" }
  private var contentTarget: String { "\(target)?alt=media" }
  private var uploadTarget: String { "\(collectionTarget)?name=\(path.percentEncoded)" }

  private static func description(_ contentType: String, _ metadata: [String: String]) -> JSON {
    .of([
      "contentType": .string(contentType),
      "metadata": metadata.isEmpty ? nil : .object(metadata.map { JSON.Member($0.key, .string($0.value)) }),
    ])
  }
}

/// What is known of a file.
public struct FileMetadata: Sendable, Hashable {
  /// The name within the bucket.
  public let path: String
  /// The size in bytes.
  public let size: Int
  /// What kind of content it is.
  public let contentType: String?
  /// When the content was stored.
  public let createTime: Timestamp?
  /// When the content or what is known of it changed last.
  public let updateTime: Timestamp?
  /// The MD5 of the content, as base64.
  public let md5: String?
  /// Names and values of the app's own.
  public let metadata: [String: String]
  /// Path and query below the server's address where anybody who knows them may download the content.
  public let sharedTarget: String?

  fileprivate init(_ response: HearthResponse) throws {
    let json = try JSON(parsing: response.body)
    guard let path = json["name"]?.text, let bucket = json["bucket"]?.text, let size = json["size"]?.integer else {
      throw HearthClientError.unreadable("metadata without a name or a size")
    }
    (self.path, self.size, contentType, md5) = (path, size, json["contentType"]?.text, json["md5Hash"]?.text)
    createTime = Timestamp(member: json["timeCreated"])
    updateTime = Timestamp(member: json["updated"])
    let members = json["metadata"]?.members ?? []
    metadata = Dictionary(members.compactMap { member in member.value.text.map { (member.name, $0) } }) { _, later in later }
    let token = json["downloadTokens"]?.text?.split(separator: ",").first
    sharedTarget = token.map {
      "/v0/b/\(bucket.percentEncoded)/o/\(path.percentEncoded)?alt=media&token=\(String($0).percentEncoded)"
    }
  }
}

extension Hearth {
  /// The file with a name, such as `avatars/ann.png`.
  /// - Parameter bucket: the bucket it is in; by default that of the project, `PROJECT.appspot.com`.
  public func file(_ path: String, in bucket: String? = nil) -> FileReference {
    FileReference(connection, bucket: bucket ?? "\(project).appspot.com", path: path)
  }
}
