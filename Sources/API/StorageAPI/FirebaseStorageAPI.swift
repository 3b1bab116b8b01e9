package import DatabaseService
import Files
import FileService
package import GatewayCore
package import Transport

/// The API of Firebase clients for files (storage-api.md, sections 3 to 8). Rules apply to its callers.
package final class FirebaseStorageAPI: API {
  package let authenticator: Authenticator
  private let context: StorageContext

  package init(_ context: StorageContext, _ authenticator: Authenticator) {
    self.context = context
    self.authenticator = authenticator
  }

  /// Reads first, because they are the most frequent; then uploads and changes.
  package static var routes: [Route<FirebaseStorageAPI>] {
    [
      row([.get, .head]) { try $0.read($1, $2) },
      row(.patch) { try $0.patch($1.object(), $2.body) },
      row(.delete, when: { $0.hasParameter("uploadId") }) { handler, _, _ in
        try CloudResumableUpload(handler.storageRequest).cancel()
      },
      row(.delete) { handler, target, _ in try handler.delete(target.object()) },
      content(when: { isPart($0) }) { handler, _, request in
        try FirebaseResumableUpload(handler.storageRequest).openBody(request)
      },
      content(.put, when: { isSessionPart($0) }) { handler, _, request in
        try CloudResumableUpload(handler.storageRequest).openBody(request)
      },
      content(when: { isWhole($0) }) { try $0.upload($1, $2) },
      row([.post, .put], when: { $0.text("x-http-method-override") == "PATCH" }) {
        try $0.patch($1.object(), $2.body)
      },
      row([.post, .put], when: { $0.header("x-goog-upload-command") != nil }) { handler, target, request in
        try FirebaseResumableUpload(handler.storageRequest).handle(target, request)
      },
      row([.post, .put], when: { $0.hasParameter("deleteToken") }) { handler, target, _ in
        try handler.deleteToken(target.object())
      },
      row([.post, .put], when: { $0.hasParameter("createToken") }) { handler, target, _ in
        try handler.createToken(target.object())
      },
      row(.post, when: { $0.parameter("uploadType") == "resumable" }) { handler, target, request in
        try CloudResumableUpload(handler.storageRequest).start(target.bucket, named: target.name, request)
      },
      Route(.all, ["/v0/b/{bucket}", "/v0/b/{bucket}/{path...}"], kind: .files, access: .caller) { api, request, call in
        try api.storageRequest(request, call).failUnknown()
      },
    ]
  }

  private static let path = "/v0/b/{bucket}/o/{name...}"

  /// A request that carries no content of an object (its body may be metadata).
  private static func row(
    _ methods: HTTPMethods, when condition: Route<FirebaseStorageAPI>.Condition? = nil,
    _ handle:
      @escaping @Sendable (FirebaseStorageHandler, FirebaseStorageHandler.Target, borrowing HTTPRequest) throws -> Void
  ) -> Route<FirebaseStorageAPI> {
    Route(methods, [path], kind: .files, access: .caller, when: condition) { api, request, call in
      let made = try api.storageRequest(request, call)
      made.respond(request) { request in
        try handle(FirebaseStorageHandler(made), .init(request, call, made.parameters), request)
      }
    }
  }

  /// A request whose body is content.
  private static func content(
    _ methods: HTTPMethods = [.post, .put], when condition: @escaping Route<FirebaseStorageAPI>.Condition,
    _ open:
      @escaping @Sendable (FirebaseStorageHandler, FirebaseStorageHandler.Target, borrowing HTTPRequest) throws ->
      any BodySink
  ) -> Route<FirebaseStorageAPI> {
    .streamed(methods, [path], kind: .upload, access: .caller, when: condition) { api, request, call in
      let made = try api.storageRequest(request, call)
      return made.open(request) { request in
        try open(FirebaseStorageHandler(made), .init(request, call, made.parameters), request)
      }
    }
  }

  /// Whether the body is a part of an upload in Firebase's protocol.
  private static func isPart(_ request: borrowing HTTPRequest) -> Bool {
    guard request.header("x-http-method-override") == nil else { return false }
    let commands = FirebaseStorageHandler.commands(request)
    return commands.contains("upload") && !commands.contains("start")
  }

  /// Whether the body is a part of an upload in Cloud Storage's protocol.
  private static func isSessionPart(_ request: borrowing HTTPRequest) -> Bool {
    mayHaveContent(request) && request.hasParameter("uploadId")
  }

  /// Whether the body is the whole content.
  private static func isWhole(_ request: borrowing HTTPRequest) -> Bool {
    guard mayHaveContent(request) else { return false }
    guard let parameters = try? StorageContext.parameters(of: request) else { return true }
    return parameters.value("uploadId") == nil && parameters.value("uploadType") != "resumable"
      && parameters.value("createToken") == nil && parameters.value("deleteToken") == nil
  }

  private static func mayHaveContent(_ request: borrowing HTTPRequest) -> Bool {
    request.header("x-http-method-override") == nil && request.header("x-goog-upload-command") == nil
      && request.text("x-goog-upload-protocol") != "resumable"
  }

  /// Returns the caller by the request's `authorization` header.
  ///
  /// - Throws: `UNAUTHENTICATED` if the credentials are not valid.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    try authenticator.caller(of: request)
  }

  /// Responds with an error in the form of this API.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    StorageContext.refuse(error, .firebase, responder)
  }

  /// Reads the parts that all requests have in common.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the query is malformed.
  private func storageRequest(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> StorageRequest {
    let parameters = try StorageContext.parameters(of: request)
    return context.storageRequest(.firebase, parameters, request, call)
  }
}
