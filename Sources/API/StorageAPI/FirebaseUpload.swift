import Files
import FileService
import GatewayCore
import Transport

/// Uploads in one request: the body is the content, or two parts with metadata and content.
extension FirebaseStorageHandler {
  /// Opens the body of an upload.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or the upload is rejected at once.
  func upload(
    _ target: Target, _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    let isMultipart =
      request.text("x-goog-upload-protocol") == "multipart"
      || storageRequest.parameters.value("uploadType") == "multipart"
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
