import GatewayCore
import DocumentModel
import Files
import Transport

/// Handles requests with signed URLs, `/BUCKET/NAME?…`, which upload, download and delete one object (see
/// ``SignedURL``).
struct SignedURLHandler: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  /// Returns the object that a path names.
  private static func object(_ path: UnsafeRawBufferPointer) throws(FilesError) -> ObjectName {
    let path = UnsafeRawBufferPointer(rebasing: path.dropFirst())
    guard let slash = path.firstIndex(of: UInt8(ascii: "/")) else {
      throw .invalid("The path of a signed URL must name an object: /BUCKET/NAME.")
    }
    return try ObjectName(
      checking: FirebaseStorageHandler.Target.decode(UnsafeRawBufferPointer(rebasing: path[..<slash])),
      FirebaseStorageHandler.Target.decode(UnsafeRawBufferPointer(rebasing: path[(slash + 1)...])))
  }

  /// Handles a request that carries no content of an object (its body may be metadata).
  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) {
    do throws(FilesError) {
      let name = try Self.object(path)
      let generation = try CloudStorageHandler(storageRequest).number("generation")
      switch request.method {
      case .get, .head:
        guard var found = try storageRequest.store.open(name, generation: generation) else { throw .noSuchObject(name) }
        if let type = storageRequest.parameters.value("response-content-type") {
          found.object.attributes.contentType = type
        }
        if let disposition = storageRequest.parameters.value("response-content-disposition") {
          found.object.attributes.contentDisposition = disposition
        }
        ObjectDownload(storageRequest, request).send(found, try ObjectConditions(storageRequest.parameters, request))
      case .delete:
        storageRequest.work { () throws(FilesError) in
          try storageRequest.store.delete(name, generation: generation)
        } then: {
          storageRequest.sendEmpty(204)
        }
      case .post where request.header("x-goog-resumable") != nil:
        try CloudResumableUpload(storageRequest).start(
          name.bucket, named: name.name, isSigned: true, status: 201, request)
      case .post, .put, .patch, .options, .other: storageRequest.failUnknown()
      }
    } catch { storageRequest.fail(error) }
  }

  /// Opens the body of a `PUT`, or responds with an error and returns `nil` if the request is rejected at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      let name = try Self.object(path)
      if let digest = request.text("x-goog-content-sha256"), digest != "UNSIGNED-PAYLOAD" {
        throw .invalid("This server does not verify X-Goog-Content-SHA256. Sign UNSIGNED-PAYLOAD and send X-Goog-Hash.")
      }
      var conditions = ObjectConditions()
      if let text = request.text("x-goog-if-generation-match") {
        guard let number = Int64(text) else { throw .invalid("X-Goog-If-Generation-Match must be a number.") }
        conditions.generationMatch = number
      }
      return try CloudStorageHandler(storageRequest).upload(
        to: name.bucket, named: name.name, isSigned: true, conditions, request)
    } catch {
      let storageRequest = storageRequest
      return DiscardedBody.responding(request) { [error] in storageRequest.fail(error) }
    }
  }
}
