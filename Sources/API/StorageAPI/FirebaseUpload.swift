import FileService
import Files
import GatewayCore
import Transport

/// Uploads in one request: the body is the content, or two parts with metadata and content.
extension FirebaseStorageHandler {
  /// Whether the body of a `POST` or `PUT` request is content.
  static func bringsContent(_ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> Bool {
    if request.header("x-http-method-override") != nil { return false }
    if let command = request.header("x-goog-upload-command") {
      let commands = commands(command)
      return commands.contains("upload") && !commands.contains("start")
    }
    if request.header("x-goog-upload-protocol").map({ $0.elementsEqual("resumable".utf8) }) ?? false { return false }
    guard let parameters = try? QueryParameters(query) else { return true }
    if parameters.value("uploadId") != nil { return request.method == .put }
    if parameters.value("uploadType") == "resumable" { return false }
    return parameters.value("createToken") == nil && parameters.value("deleteToken") == nil
  }

  /// Opens the body of an upload, or responds with an error and returns `nil` if the request is rejected at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      guard let target = try Target(path, storageRequest.parameters) else {
        storageRequest.failUnknown()
        return nil
      }
      if let command = request.header("x-goog-upload-command") {
        return try FirebaseResumableUpload(storageRequest).openBody(Self.commands(command), request)
      }
      if let id = storageRequest.parameters.value("uploadId") {
        return try CloudResumableUpload(storageRequest).openBody(id, request)
      }
      let isMultipart =
        request.header("x-goog-upload-protocol").map { $0.elementsEqual("multipart".utf8) } ?? false
        || storageRequest.parameters.value("uploadType") == "multipart"
      return try upload(target, isMultipart: isMultipart, request)
    } catch {
      let storageRequest = storageRequest
      return DiscardedBody.responding(request) { [error] in storageRequest.fail(error) }
    }
  }

  private func upload(
    _ target: Target, isMultipart: Bool, _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    var upload = WholeUpload(storageRequest, bucket: target.bucket, name: target.name)
    upload.conditions = try ObjectConditions(storageRequest.parameters)
    // In a multipart upload the metadata may contain the name.
    if target.name != nil || !isMultipart { _ = try target.object() }
    try storageRequest.service.requireRules(as: storageRequest.caller)
    upload.declared = try DeclaredChecksums(request, isContent: !isMultipart)
    guard isMultipart else {
      upload.attributes.contentType = request.text("content-type")
      upload.attributes.contentEncoding = request.text("content-encoding")
      return try upload.openBody(request)
    }
    return upload.openBody(try MultipartReader(contentType: request.header("content-type")), request)
  }
}
