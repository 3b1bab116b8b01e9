import Files
import Transport
import WireFormat

extension FilesClient {
  /// Makes an object of a file, and checks that what was stored is what was sent. `progress` is told how many bytes
  /// have gone, which may become fewer where the server lost some.
  ///
  /// A file of more than ``partBytes`` goes in parts: what the server has of it is not sent again.
  /// - Throws: ``CommandFailure``, also where the file cannot be read to its end; `HTTPClientError`.
  func upload(
    _ source: LocalSource, as name: String, in bucket: String, type: String, progress: (Int) -> Void
  ) throws {
    let object =
      try source.size > partBytes
      ? sendInParts(source, name, bucket, type, progress) : sendWhole(source, name, bucket, type, progress)
    guard object.size == source.size, object.crc32c == source.crc32c else {
      throw CommandFailure.failed(
        "\(source.path): what arrived as \(object.text) is not what was sent (\(object.crc32c) in place of "
          + "\(source.crc32c)); copy it again")
    }
  }

  private func sendWhole(
    _ source: LocalSource, _ name: String, _ bucket: String, _ type: String, _ progress: (Int) -> Void
  ) throws -> Object {
    let target = Self.uploads(bucket) + "?uploadType=media&name=\(ServerClient.encode(name.utf8))"
    return try retries.run { _ in
      source.goBack(to: 0)
      let fields = [(name: "Content-Type", value: type)]
      return try send("POST", target, fields, source, source.size, progress).object
    }
  }

  private func sendInParts(
    _ source: LocalSource, _ name: String, _ bucket: String, _ type: String, _ progress: (Int) -> Void
  ) throws -> Object {
    var begun: String?
    do {
      return try retries.run(at: { source.position }) { isAgain in
        do {
          if isAgain, let begun, let object = try resume(begun, source, progress) { return object }
          let target = try begun ?? begin(source, name, bucket, type)
          begun = target
          return try sendParts(source, target, progress)
        } catch var failure as CommandFailure where [404, 410].contains(failure.httpStatus) && begun != nil {
          // The server does not know the upload any more: another one is begun.
          begun = nil
          source.goBack(to: 0)
          failure.mayPass = true
          throw failure
        }
      }
    } catch {
      // What the server has of it helps nobody; where nobody answers there is nobody to tell.
      if let begun, !(error is HTTPClientError) { _ = try? server.request("DELETE", begun, [], byteCount: 0) { [] } }
      throw error
    }
  }

  /// Begins an upload in parts; returns the target that takes them.
  private func begin(_ source: LocalSource, _ name: String, _ bucket: String, _ type: String) throws -> String {
    let target = Self.uploads(bucket) + "?uploadType=resumable&name=\(ServerClient.encode(name.utf8))"
    let fields = [
      (name: "X-Upload-Content-Type", value: type), (name: "X-Upload-Content-Length", value: String(source.size)),
    ]
    let response = try server.request("POST", target, fields, byteCount: 0) { [] }
    guard let id = response.header("x-guploader-uploadid") else {
      throw CommandFailure.failed("\(server.address) began no upload; is it a Hearth server?")
    }
    source.goBack(to: 0)
    return Self.uploads(bucket) + "?uploadType=resumable&upload_id=\(ServerClient.encode(id.utf8))"
  }

  /// Asks how far an upload is, and goes back to there; returns the object where it has become one.
  private func resume(_ target: String, _ source: LocalSource, _ progress: (Int) -> Void) throws -> Object? {
    let asked = [(name: "Content-Range", value: "bytes */\(source.size)")]
    let answer = try send("PUT", target, asked, source, 0, progress)
    if answer.status != Self.goOn { return try answer.object }
    source.goBack(to: try answer.storedBytes)
    progress(source.position)
    return nil
  }

  private func sendParts(_ source: LocalSource, _ target: String, _ progress: (Int) -> Void) throws -> Object {
    while true {
      let start = source.position
      let count = min(partBytes, source.size - start)
      let range = "bytes \(count == 0 ? "*" : "\(start)-\(start + count - 1)")/\(source.size)"
      let answer = try send("PUT", target, [(name: "Content-Range", value: range)], source, count, progress)
      if answer.status != Self.goOn { return try answer.object }
      let stored = try answer.storedBytes
      source.goBack(to: stored)
      progress(stored)
      guard stored > start else {
        var failure = CommandFailure.failed("\(server.address) stored nothing of \(count) bytes of \(source.path)")
        failure.mayPass = true
        failure.httpStatus = Self.goOn
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
      // Why it ended too early is what the source knows.
      if let failure = source.failure { throw failure }
      throw error
    }
  }

  /// Hands on the content of an object as it was listed, as it is stored, each byte once.
  /// - Throws: ``CommandFailure`` where what comes is not what the server says it is, or is another object by now;
  ///   `HTTPClientError`, and what `take` throws.
  func download(_ object: Object, _ take: ([UInt8]) throws -> Void) throws {
    // The generation sees to it that all parts are of one content.
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
        "\(object.text): what arrived is not what is stored (\(size) of \(object.size) bytes, \(Crc32c.text(sum)) in "
          + "place of \(object.crc32c)); copy it again, and run `hearth check` where the server is")
    }
  }

  /// The status that says that more of an upload is to come.
  private static let goOn = 308

  private static func uploads(_ bucket: String) -> String { "/upload" + root(bucket) + "/o" }
}

extension HTTPClient.Response {
  /// The object that an answer tells of.
  fileprivate var object: FilesClient.Object {
    get throws { try JSONText.read(body) { FilesClient.Object($0) } }
  }

  /// How many bytes of an upload the server has: `Range: bytes=0-N`, or nothing for none.
  fileprivate var storedBytes: Int {
    get throws {
      guard let range = header("range") else { return 0 }
      guard range.utf8.starts(with: "bytes=0-".utf8), let last = Int(range.dropFirst("bytes=0-".count)), last >= 0,
        last < Int.max
      else { throw CommandFailure.failed("the server's answer makes no sense: Range: \(range)") }
      return last + 1
    }
  }
}

extension Crc32c {
  /// A sum as it stands in JSON.
  static func text(_ sum: UInt32) -> String {
    Base64.encode((0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32($0))) })
  }
}
