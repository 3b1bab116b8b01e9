package import DatabaseService
import Files
import FileService
package import GatewayCore
import Synchronization
package import Transport

/// Cloud Storage's JSON API, which only administrators use (storage-api.md, sections 9 to 11), and the request with
/// which test suites control an emulator's files (section 13).
package final class CloudStorageAPI: API {
  package let authenticator: Authenticator
  private let context: StorageContext
  /// The router of the operations, by which the parts of a batch are matched. Their numbers are the indexes of
  /// ``CloudOperation/all``.
  private let operations = Mutex<Router?>(nil)

  package init(_ context: StorageContext, _ authenticator: Authenticator) {
    self.context = context
    self.authenticator = authenticator
  }

  private var operationsRouter: Router {
    operations.withLock { router in
      let known = router ?? Router(Array(endpoints.prefix(CloudOperation.all.count)))
      router = known
      return known
    }
  }

  private static let upload = "/upload/storage/v1/b"
  private static let batch = ["/batch/storage/v1/{path...}"]

  /// The operations on buckets and objects, uploads, batches, and the control of an emulator.
  package static var routes: [Route<CloudStorageAPI>] {
    CloudOperation.all.map { operation in
      row(operation.methods, operation.routePaths) { made, request, call in
        try operation.run(CloudStorageHandler(made), CloudPath(request, call), request)
      }
    } + [
      // The ID of an upload suffices to continue it, as with a signed URL.
      .streamed(
        .put, ["\(upload)/{path...}"], kind: .upload, access: .caller, when: { $0.hasParameter("uploadId") }
      ) { api, request, call in
        let made = try api.storageRequest(request, call)
        return made.open(request) { request in try CloudResumableUpload(made).openBody(request) }
      },
      .streamed(
        .post, ["\(upload)/{bucket}/o", "\(upload)/{bucket}/o/"], kind: .upload, access: .administrator,
        when: { isWhole($0) }
      ) { api, request, call in
        let made = try api.storageRequest(request, call)
        return made.open(request) { request in
          try CloudStorageHandler(made).upload(
            to: call.text(0, of: request), named: made.parameters.value("name"),
            ObjectConditions(made.parameters), request)
        }
      },
      row(.post, ["\(upload)/{bucket}/o", "\(upload)/{bucket}/o/"]) { made, request, call in
        try CloudResumableUpload(made).start(
          call.text(0, of: request), named: made.parameters.value("name"), request)
      },
      row(.delete, ["\(upload)/{path...}"], when: { $0.hasParameter("uploadId") }) { made, _, _ in
        try CloudResumableUpload(made).cancel()
      },
      Route(.post, batch, kind: .files, access: .administrator) { api, request, call in
        let made = try api.storageRequest(request, call)
        made.respond(request) { request in try CloudBatch.handle(made, request, api.operationsRouter) }
      },
      row(.put, ["/internal/setRules"]) { made, request, _ in try FilesControl.setRules(made, request) },
      row(.all, batch + ["\(upload)/{path...}", "/internal/{name}", "/internal/{name}/{path...}"]) { made, _, _ in
        made.failUnknown()
      },
    ]
  }

  private static func row(
    _ methods: HTTPMethods, _ paths: [String], when condition: Route<CloudStorageAPI>.Condition? = nil,
    _ handle:
      @escaping @Sendable (StorageRequest, borrowing HTTPRequest, RoutedCall) throws -> Void
  ) -> Route<CloudStorageAPI> {
    Route(methods, paths, kind: .files, access: .administrator, when: condition) { api, request, call in
      let made = try api.storageRequest(request, call)
      made.respond(request) { request in try handle(made, request, call) }
    }
  }

  /// Whether the body of a `POST` is the whole content.
  private static func isWhole(_ request: borrowing HTTPRequest) -> Bool {
    guard let parameters = try? StorageContext.parameters(of: request) else { return false }
    return parameters.value("uploadId") == nil && parameters.value("uploadType") != "resumable"
  }

  /// Returns the caller of a request. Only administrators may use this API, but to continue an upload its ID suffices:
  /// that is the only route for every caller.
  ///
  /// In emulator mode clients send no credentials, or those of any service account.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the query is malformed or the request has encryption keys;
  ///   `UNAUTHENTICATED` or a ``StorageErrorResponse`` if the caller is not an administrator.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    let parameters = try StorageContext.parameters(of: request)
    let caller =
      access == .caller ? try authenticator.caller(of: request) : try authenticator.serviceAccount(of: request)
    if !caller.isAdmin {
      guard request.header("authorization") == nil else {
        throw StorageErrorResponse(status: 403, message: "Missing admin credentials.", reason: "authError")
      }
      guard access == .caller else {
        throw StorageErrorResponse(status: 401, message: "Login Required.", reason: "authError")
      }
    }
    try Self.requireNoKeys(parameters, request)
    return caller
  }

  /// Rejects requests with encryption keys. If the server ignored the keys, clients would rely on encryption that does
  /// not exist.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request has one.
  static func requireNoKeys(_ parameters: QueryParameters, _ request: borrowing HTTPRequest) throws(FilesError) {
    guard
      request.header("x-goog-encryption-algorithm") != nil
        || request.header("x-goog-copy-source-encryption-algorithm") != nil
        || parameters.value("kmsKeyName") != nil || parameters.value("destinationKmsKeyName") != nil
    else { return }
    throw .invalid(
      "This server does not support encryption keys. Remove the key, or encrypt the content before you upload it.")
  }

  /// Responds with an error in the form of this API.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    StorageContext.refuse(error, .cloud, responder)
  }

  /// Reads the parts that all requests have in common.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the query or its field selection is malformed.
  private func storageRequest(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> StorageRequest {
    let parameters = try StorageContext.parameters(of: request)
    var made = context.storageRequest(.cloud, parameters, request, call)
    made.fields = try FieldSelection(parameters)
    return made
  }
}
