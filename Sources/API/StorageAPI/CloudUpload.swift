import Files
import GatewayCore
import Transport

/// Uploads in one request: `uploadType=media` and `uploadType=multipart`.
extension CloudStorageHandler {
  /// The limit of the metadata before the content, which may include documents to commit.
  private static let headBytesMax = 1 << 20

  /// Opens the body of an upload of an object, whose name may also be in its metadata.
  ///
  /// - Parameter isSigned: whether a signed URL allows the upload. Then the body is content only: metadata in it
  ///   would have an administrator's rights, and the signature does not cover them.
  /// - Throws: ``FilesError/invalid(_:)`` if a header is malformed.
  func upload(
    to bucket: String, named: String?, isSigned: Bool = false, _ conditions: ObjectConditions,
    _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    var upload = WholeUpload(storageRequest, bucket: bucket, name: named)
    upload.conditions = conditions
    upload.attributes.contentEncoding = storageRequest.parameters.value("contentEncoding")
    guard !isSigned, storageRequest.parameters.value("uploadType") == "multipart" else {
      upload.declared = try DeclaredChecksums(request, isContent: true)
      upload.attributes.contentType = request.text("content-type")
      return try upload.openBody(request)
    }
    let reader = try MultipartReader(contentType: request.header("content-type"), headBytesMax: Self.headBytesMax)
    upload.declared = try DeclaredChecksums(request, isContent: false)
    return upload.openBody(reader, request)
  }
}

extension DeclaredChecksums {
  /// Reads the checksums in a request's header: `X-Goog-Hash: crc32c=…,md5=…`. If the body is only content, also
  /// reads `Content-MD5` and the SHA-256 in `Content-Digest: sha-256=:…:`.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if `X-Goog-Hash` contains another kind of checksum, which the server
  ///   cannot verify.
  init(_ request: borrowing HTTPRequest, isContent: Bool) throws(FilesError) {
    self.init()
    for part in (request.text("x-goog-hash") ?? "").split(separator: ",") {
      let text = part.drop { $0 == " " }
      if text.hasPrefix("crc32c=") {
        crc32c = String(text.dropFirst("crc32c=".count))
      } else if text.hasPrefix("md5=") {
        md5 = String(text.dropFirst("md5=".count))
      } else {
        throw .invalid("X-Goog-Hash may contain only crc32c and md5, not: \(text)")
      }
    }
    guard isContent else { return }
    if let text = request.text("content-md5") { md5 = md5 ?? text }
    for part in (request.text("content-digest") ?? "").split(separator: ",") {
      let text = part.drop { $0 == " " }
      guard text.lowercased().hasPrefix("sha-256=:") else { continue }
      sha256 = String(text.dropFirst("sha-256=:".count).prefix { $0 != ":" })
    }
  }
}
