import Digests
import Files
import WebClient
import WireFormat

extension FilesClient {
  /// Uploads a file, and verifies size and checksum of the stored object. `progress` receives the number of bytes sent,
  /// which can decrease if the server lost some.
  ///
  /// `settings` are metadata in the API's form, and override `type`.
  ///
  /// A file of more than ``partBytes``, or with settings, is sent in parts. Parts that the server has are not sent again after a failure.
  /// - Throws: ``CommandFailure`` if the upload fails or the file cannot be read to its end; `HTTPClientError` if the
  ///   connection breaks.
  func upload(
    _ source: LocalSource, as name: String, in bucket: String, type: String, settings: [UInt8] = [],
    progress: (Int) -> Void
  ) throws {
    let object =
      try source.size > partBytes || !settings.isEmpty
      ? sendInParts(source, name, bucket, type, settings, progress) : sendWhole(source, name, bucket, type, progress)
    guard object.size == source.size, object.crc32c == source.crc32c else {
      throw CommandFailure.failed(
        "\(source.path): the stored file \(object.text) differs from the sent one (CRC-32C \(object.crc32c) instead of "
          + "\(source.crc32c)); copy it again")
    }
  }

  private func sendWhole(
    _ source: LocalSource, _ name: String, _ bucket: String, _ type: String, _ progress: (Int) -> Void
  ) throws -> Object {
    let target = Self.uploads(bucket) + "?uploadType=media&name=\(ServerClient.encode(name.utf8))"
    return try retries.run { _ in
      source.seek(to: 0)
      let fields = [(name: "Content-Type", value: type)]
      return try send("POST", target, fields, source, source.size, progress).object
    }
  }

  private func sendInParts(
    _ source: LocalSource, _ name: String, _ bucket: String, _ type: String, _ settings: [UInt8],
    _ progress: (Int) -> Void
  ) throws -> Object {
    var begun: String?
    do {
      return try retries.run(at: { source.position }) { isAgain in
        do {
          if isAgain, let begun, let object = try resume(begun, source, progress) { return object }
          let target = try begun ?? begin(source, name, bucket, type, settings)
          begun = target
          return try sendParts(source, target, progress)
        } catch var failure as CommandFailure where [404, 410].contains(failure.httpStatus) && begun != nil {
          // The server no longer knows the upload, so begin a new one.
          begun = nil
          source.seek(to: 0)
          failure.isTemporary = true
          throw failure
        }
      }
    } catch {
      // Cancel the upload, because its parts are useless now. After an `HTTPClientError` the server is unreachable.
      if let begun, !(error is HTTPClientError) { _ = try? server.request("DELETE", begun, [], byteCount: 0) { [] } }
      throw error
    }
  }

  /// Begins an upload in parts, and returns the request target for the parts.
  private func begin(
    _ source: LocalSource, _ name: String, _ bucket: String, _ type: String, _ settings: [UInt8]
  ) throws -> String {
    let target = Self.uploads(bucket) + "?uploadType=resumable&name=\(ServerClient.encode(name.utf8))"
    var fields = [(name: "X-Upload-Content-Length", value: String(source.size))]
    if settings.isEmpty {
      fields.append((name: "X-Upload-Content-Type", value: type))
    } else {
      fields.append((name: "Content-Type", value: "application/json"))
    }
    let response = try server.request("POST", target, fields, byteCount: settings.count) { settings }
    guard let id = response.header("x-guploader-uploadid") else {
      throw CommandFailure.failed("\(server.address) returned no upload ID; is it a Hearth server?")
    }
    source.seek(to: 0)
    return Self.uploads(bucket) + "?uploadType=resumable&upload_id=\(ServerClient.encode(id.utf8))"
  }

  /// Asks the server how much of an upload it has, and continues there. Returns the object if the upload is complete.
  private func resume(_ target: String, _ source: LocalSource, _ progress: (Int) -> Void) throws -> Object? {
    let asked = [(name: "Content-Range", value: "bytes */\(source.size)")]
    let answer = try send("PUT", target, asked, source, 0, progress)
    if answer.status != Self.resume { return try answer.object }
    source.seek(to: try answer.storedBytes)
    progress(source.position)
    return nil
  }

  private func sendParts(_ source: LocalSource, _ target: String, _ progress: (Int) -> Void) throws -> Object {
    while true {
      let start = source.position
      let count = min(partBytes, source.size - start)
      let range = "bytes \(count == 0 ? "*" : "\(start)-\(start + count - 1)")/\(source.size)"
      let answer = try send("PUT", target, [(name: "Content-Range", value: range)], source, count, progress)
      if answer.status != Self.resume { return try answer.object }
      let stored = try answer.storedBytes
      source.seek(to: stored)
      progress(stored)
      guard stored > start else {
        var failure = CommandFailure.failed(
          "\(server.address) stored none of \(CountText.of(count, "byte")) of \(source.path)")
        failure.isTemporary = true
        failure.httpStatus = Self.resume
        throw failure
      }
    }
  }

  /// Sends the next bytes of a file.
  private func send(
    _ method: String, _ target: String, _ fields: [(name: String, value: String)], _ source: LocalSource, _ count: Int,
    _ progress: (Int) -> Void
  ) throws -> HTTPClient.Response {
    let end = source.position + count
    do {
      return try server.request(method, target, fields, byteCount: count) {
        let piece = source.next(atMost: end - source.position)
        progress(source.position)
        return piece
      }
    } catch {
      // If the file could not be read, report that instead of the incomplete request.
      if let failure = source.failure { throw failure }
      throw error
    }
  }

  /// Passes the stored content of a listed object to `take`, each byte once.
  /// - Throws: ``CommandFailure`` if the content does not match the listed checksum, or the object was replaced;
  ///   `HTTPClientError` if the connection breaks; or the error of `take`.
  func download(_ object: Object, _ take: ([UInt8]) throws -> Void) throws {
    // The generation ensures that all parts belong to the same content.
    let target =
      "/download" + Self.target(object.name, in: object.bucket) + "?alt=media&generation=\(object.generation)"
    var sum: UInt32 = 0
    var size = 0
    try retries.run(at: { size }) { isAgain in
      if isAgain, size >= object.size { return }
      try server.content(target, from: size) { piece in
        try take(piece)
        sum = piece.withUnsafeBytes { Crc32c.extend(sum, $0) }
        size += piece.count
      }
    }
    guard size == object.size, Crc32c.text(sum) == object.crc32c else {
      throw CommandFailure.failed(
        "\(object.text): the received content differs from the stored one (\(size) of \(object.size) bytes, CRC-32C "
          + "\(Crc32c.text(sum)) instead of \(object.crc32c)); copy it again, and run `hearth check` on the server")
    }
  }

  /// The status by which the server expects more of an upload.
  private static let resume = 308

  private static func uploads(_ bucket: String) -> String { "/upload" + root(bucket) + "/o" }
}

extension HTTPClient.Response {
  /// The object in the body of the response.
  fileprivate var object: FilesClient.Object {
    get throws { try JSONText.read(body) { FilesClient.Object($0) } }
  }

  /// The number of bytes of an upload that the server has: `Range: bytes=0-N`, or no header for none.
  fileprivate var storedBytes: Int {
    get throws {
      guard let range = header("range") else { return 0 }
      guard range.utf8.starts(with: "bytes=0-".utf8), let last = Int(range.dropFirst("bytes=0-".count)), last >= 0,
        last < Int.max
      else { throw CommandFailure.failed("the server's response has an invalid header: Range: \(range)") }
      return last + 1
    }
  }
}

extension Crc32c {
  /// Returns a checksum in the form of the API's JSON: base64 of four bytes, the highest first.
  static func text(_ sum: UInt32) -> String {
    Base64.encode((0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32($0))) })
  }
}
