public import Foundation

/// A reference to a file in a bucket. The file need not exist.
///
///     let avatar = hearth.file("avatars/ann.png")
///     try await avatar.upload(png, contentType: "image/png")
///     let data = try await avatar.download()
///
/// Rules for files (`service firebase.storage`) authorize the requests. Without such rules, only administrators may
/// make them.
public struct FileReference: Sendable, CustomStringConvertible {
  /// The name in the bucket, such as `avatars/ann.png`.
  public let path: String
  /// The bucket.
  public let bucket: String
  private let connection: ClientConnection

  /// The size of an upload's parts, in bytes. A part is held in memory, and sent again if the connection breaks.
  private static let partBytes = 4 << 20
  /// How often a part is sent before the upload fails.
  private static let attemptsMax = 5

  init(_ connection: ClientConnection, bucket: String, path: String) {
    (self.connection, self.bucket, self.path) = (connection, bucket, path)
  }

  /// The path.
  public var description: String { path }

  /// Uploads content, and replaces the file if it exists.
  /// - Parameter metadata: custom names and values.
  /// - Throws: ``HearthClientError`` if the request fails.
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

  /// Uploads a local file in parts. A part that is lost is sent again, and only one part is in memory.
  /// - Throws: ``HearthClientError`` if a request fails, or an error of Foundation if the local file cannot be read.
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
    // The URL contains the address by which the server was reached. Use only its path, because the transport knows
    // the address.
    guard let url = started.headers["x-goog-upload-url"], let target = url.range(of: "/v0/b/") else {
      throw HearthClientError.unreadable("the upload response contains no URL")
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
          throw HearthClientError(.invalidArgument, "\(file.path) was truncated during the upload.")
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
        // The server keeps the bytes of the part that it received.
        let query = HearthRequest("POST", target, headers: ["X-Goog-Upload-Command": "query"])
        if let status = try? await connection.send(query) {
          offset = status.headers["x-goog-upload-size-received"].flatMap { UInt64($0) } ?? offset
        }
      }
    }
  }

  /// Downloads the content.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/notFound`` if the file does not exist.
  public func download() async throws -> Data { try await connection.send(HearthRequest("GET", contentTarget)).body }

  /// Downloads the content to a local file, which it replaces in one step. Holds little in memory.
  /// - Throws: ``HearthClientError`` if the request fails, or an error of the system if the file cannot be written.
  ///   The existing file is unchanged then.
  public func download(to file: URL) async throws {
    let part = file.deletingLastPathComponent().appendingPathComponent(".\(UUID().uuidString).part")
    defer { try? FileManager.default.removeItem(at: part) }
    try await connection.download(HearthRequest("GET", contentTarget), to: part)
    try Task.checkCancellation()
    // A rename is atomic: readers of the file get either the old or the new content.
    guard rename(part.path, file.path) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO, userInfo: [NSFilePathErrorKey: file.path])
    }
  }

  /// Returns the metadata.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/notFound`` if the file does not exist.
  public func metadata() async throws -> FileMetadata {
    try FileMetadata(try await connection.send(HearthRequest("GET", target)))
  }

  /// Deletes the file.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/notFound`` if the file does not exist.
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

/// The metadata of a file.
public struct FileMetadata: Sendable, Hashable {
  /// The name in the bucket.
  public let path: String
  /// The size in bytes.
  public let size: Int
  /// The media type of the content, or `nil` if the server does not send one.
  public let contentType: String?
  /// The time at which the content was stored.
  public let createTime: Timestamp?
  /// The time of the last change of the content or the metadata.
  public let updateTime: Timestamp?
  /// The MD5 digest of the content, in base64.
  public let md5: String?
  /// Custom names and values.
  public let metadata: [String: String]
  /// The path and query of a URL on the server that allows a download without authorization, or `nil`.
  public let sharedTarget: String?

  fileprivate init(_ response: HearthResponse) throws {
    let json = try JSON(parsing: response.body)
    guard let path = json["name"]?.text, let bucket = json["bucket"]?.text, let size = json["size"]?.integer else {
      throw HearthClientError.unreadable("the metadata has no name, bucket or size")
    }
    (self.path, self.size, contentType, md5) = (path, size, json["contentType"]?.text, json["md5Hash"]?.text)
    createTime = Timestamp(member: json["timeCreated"])
    updateTime = Timestamp(member: json["updated"])
    let members = json["metadata"]?.members ?? []
    metadata = Dictionary(members.compactMap { member in member.value.text.map { (member.name, $0) } }) { _, later in
      later
    }
    let token = json["downloadTokens"]?.text?.split(separator: ",").first
    sharedTarget = token.map {
      "/v0/b/\(bucket.percentEncoded)/o/\(path.percentEncoded)?alt=media&token=\(String($0).percentEncoded)"
    }
  }
}

extension Hearth {
  /// Returns a reference to the file with a name, such as `avatars/ann.png`.
  /// - Parameter bucket: the bucket of the file. The default is the project's bucket, `PROJECT.appspot.com`.
  public func file(_ path: String, in bucket: String? = nil) -> FileReference {
    FileReference(connection, bucket: bucket ?? "\(project).appspot.com", path: path)
  }
}
