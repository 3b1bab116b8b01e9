import TestSupport

/// A plain client of the files of one person, for an app's images, sound and PDFs, over HTTP.
///
/// Use it on one thread, like its connection.
final class StoredFiles {
  private let person: Person
  private let client: TestHTTPClient
  private let bucket: String

  init(of person: Person, bucket: String = "demo.appspot.com") {
    self.person = person
    self.bucket = bucket
    client = TestHTTPClient(port: person.port)
  }

  private func url(_ path: String) -> String { "/v0/b/\(bucket)/o/\(percentEncoded(path.utf8))" }

  private var credential: [(String, String)] {
    person.idToken.isEmpty ? [] : [("Authorization", "Firebase \(person.idToken)")]
  }

  /// Uploads content in one raw request.
  func upload(_ path: String, _ content: [UInt8], type: String) throws -> HTTPResponse {
    try client.send(
      "POST", "/v0/b/\(bucket)/o?name=\(percentEncoded(path.utf8))",
      headers: credential + [("Content-Type", type)], body: content)
  }

  /// Uploads content together with custom metadata, as the web SDK does with a small file.
  func upload(_ path: String, _ content: [UInt8], type: String, metadata: JSONNode) throws -> HTTPResponse {
    let attributes: JSONNode = ["name": .string(path), "contentType": .string(type), "metadata": metadata]
    let boundary = "a-boundary"
    let body =
      Array("--\(boundary)\r\nContent-Type: application/json\r\n\r\n\(attributes.text)\r\n".utf8)
      + Array("--\(boundary)\r\nContent-Type: \(type)\r\n\r\n".utf8) + content + Array("\r\n--\(boundary)--".utf8)
    return try client.send(
      "POST", "/v0/b/\(bucket)/o?name=\(percentEncoded(path.utf8))",
      headers: credential + [
        ("X-Goog-Upload-Protocol", "multipart"), ("Content-Type", "multipart/related; boundary=\(boundary)"),
      ], body: body)
  }

  /// Uploads content in pieces of `pieceBytes`, as SDKs do with large files. Loses the connection after each piece.
  func upload(_ path: String, _ content: [UInt8], type: String, inPiecesOf pieceBytes: Int) throws -> HTTPResponse {
    let attributes: JSONNode = ["name": .string(path), "contentType": .string(type)]
    let start = try client.send(
      "POST", "/v0/b/\(bucket)/o?name=\(percentEncoded(path.utf8))",
      headers: credential + [
        ("X-Goog-Upload-Protocol", "resumable"), ("X-Goog-Upload-Command", "start"),
        ("X-Goog-Upload-Header-Content-Length", String(content.count)),
        ("X-Goog-Upload-Header-Content-Type", type), ("Content-Type", "application/json"),
      ], body: Array(attributes.text.utf8))
    guard start.status == 200, let address = start.header("x-goog-upload-url"),
      let target = address.firstRange(of: "/v0/").map({ String(address[$0.lowerBound...]) })
    else { return start }
    var offset = 0
    while true {
      client.close()
      let asked = try client.send(
        "POST", target, headers: credential + [("X-Goog-Upload-Command", "query")], body: [])
      guard asked.header("x-goog-upload-size-received") == String(offset) else { return asked }
      let end = min(offset + pieceBytes, content.count)
      let command = end == content.count ? "upload, finalize" : "upload"
      let reply = try client.send(
        "POST", target,
        headers: credential + [("X-Goog-Upload-Command", command), ("X-Goog-Upload-Offset", String(offset))],
        body: Array(content[offset..<end]))
      offset = end
      if end == content.count || reply.status != 200 { return reply }
    }
  }

  /// Downloads a file, or the range that `headers` request.
  func download(_ path: String, headers: [(String, String)] = []) throws -> HTTPResponse {
    try client.send("GET", url(path) + "?alt=media", headers: credential + headers)
  }

  /// Downloads a file without signing in, by a link with its token.
  func follow(_ path: String, token: String) throws -> HTTPResponse {
    try client.send("GET", url(path) + "?alt=media&token=\(token)")
  }

  /// The metadata of a file.
  func attributes(_ path: String) throws -> HTTPResponse { try client.send("GET", url(path), headers: credential) }

  /// The files below a folder.
  func list(_ folder: String) throws -> HTTPResponse {
    try client.send(
      "GET", "/v0/b/\(bucket)/o?prefix=\(percentEncoded(folder.utf8))&delimiter=%2F", headers: credential)
  }

  func delete(_ path: String) throws -> HTTPResponse { try client.send("DELETE", url(path), headers: credential) }
}
