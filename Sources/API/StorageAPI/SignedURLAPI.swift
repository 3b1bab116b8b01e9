package import Accounts
package import DatabaseService
import Files
import FileService
package import GatewayCore
package import Transport

/// Requests with signed URLs: `/BUCKET/NAME?…` uploads, downloads and deletes one object, and `/BUCKET?…` lists the
/// objects of a bucket (see ``SignedURL``). They have their signer's rights, those of an administrator.
package final class SignedURLAPI: API {
  package let authenticator: Authenticator
  private let context: StorageContext
  private let keys: ServiceKeys

  package init(_ context: StorageContext, _ authenticator: Authenticator, keys: ServiceKeys) {
    self.context = context
    self.authenticator = authenticator
    self.keys = keys
  }

  /// Requests of any path whose query has a signature.
  package static var routes: [Route<SignedURLAPI>] {
    [
      Route(.get, ["/{bucket}", "/{bucket}/"], kind: .files, access: .caller, when: { isSigned($0) }) {
        api, request, call in
        let made = try api.storageRequest(request, call)
        made.respond(request) { request in
          try ObjectListXML(call.text(0, of: request), made.parameters).respond(made)
        }
      },
      row([.get, .head]) { try download($0, $1, $2) },
      row(.delete) { made, name, _ in try delete(made, name) },
      .streamed(.put, path, kind: .upload, access: .caller, when: { isSigned($0) }) { api, request, call in
        let made = try api.storageRequest(request, call)
        return made.open(request) { request in try upload(made, object(request, call), request) }
      },
      row(.post, when: { isSigned($0) && $0.header("x-goog-resumable") != nil }) { made, name, request in
        try CloudResumableUpload(made).start(name.bucket, named: name.name, isSigned: true, status: 201, request)
      },
      row(.all) { made, _, _ in made.failUnknown() },
    ]
  }

  private static let path = ["/{path...}"]

  private static func isSigned(_ request: borrowing HTTPRequest) -> Bool {
    let query = request.target.pathAndQuery.query
    return !query.isEmpty && SignedURL.isSigned(query)
  }

  private static func row(
    _ methods: HTTPMethods, when condition: @escaping Route<SignedURLAPI>.Condition = { isSigned($0) },
    _ handle:
      @escaping @Sendable (StorageRequest, ObjectName, borrowing HTTPRequest) throws -> Void
  ) -> Route<SignedURLAPI> {
    Route(methods, path, kind: .files, access: .caller, when: condition) { api, request, call in
      let made = try api.storageRequest(request, call)
      made.respond(request) { request in try handle(made, object(request, call), request) }
    }
  }

  /// Returns the object that a path names.
  private static func object(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> ObjectName {
    let path = call.part(0, of: request)
    guard let slash = path.firstIndex(of: UInt8(ascii: "/")) else {
      throw FilesError.invalid("The path of a signed URL must name an object: /BUCKET/NAME.")
    }
    return try ObjectName(
      checking: RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: path[..<slash])),
      RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: path[(slash + 1)...])))
  }

  private static func download(
    _ made: StorageRequest, _ name: ObjectName, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    let generation = try CloudStorageHandler(made).number("generation")
    let conditions = try ObjectConditions(made.parameters, request)
    try ObjectDownload(made, request).send(conditions) { (waits) throws(FilesError) in
      let content = try made.service.getContent(name, generation: generation, waits: waits, as: made.caller)
      guard var found = content else { throw .noSuchObject(name) }
      if let type = made.parameters.value("response-content-type") { found.object.attributes.contentType = type }
      if let disposition = made.parameters.value("response-content-disposition") {
        found.object.attributes.contentDisposition = disposition
      }
      return found
    }
  }

  private static func delete(_ made: StorageRequest, _ name: ObjectName) throws(FilesError) {
    let generation = try CloudStorageHandler(made).number("generation")
    made.work { () throws(FilesError) in
      try made.service.deleteObject(name, generation: generation, as: made.caller)
    } then: {
      made.sendEmpty(204)
    }
  }

  private static func upload(
    _ made: StorageRequest, _ name: ObjectName, _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    if let digest = request.text("x-goog-content-sha256"), digest != "UNSIGNED-PAYLOAD" {
      throw .invalid("This server does not verify X-Goog-Content-SHA256. Sign UNSIGNED-PAYLOAD and send X-Goog-Hash.")
    }
    var conditions = ObjectConditions()
    if let text = request.text("x-goog-if-generation-match") {
      guard let number = Int64(text) else { throw .invalid("X-Goog-If-Generation-Match must be a number.") }
      conditions.generationMatch = number
    }
    return try CloudStorageHandler(made).upload(
      to: name.bucket, named: name.name, isSigned: true, conditions, request)
  }

  /// Verifies the signature. An emulator also accepts the URLs of service accounts that it does not know: it accepts
  /// requests without credentials anyway, and test suites sign with keys of their own.
  ///
  /// - Throws: ``FilesError`` if the query is malformed, no current key signed the request, the signature is not valid
  ///   now, or the store cannot be opened; `UNAUTHENTICATED` if the request also has other, invalid credentials.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    let parameters = try StorageContext.parameters(of: request)
    let signature = try signedURL(request, parameters).check(
      keys, nowSeconds: context.service.now() / 1_000_000, acceptsUnknownSigners: authenticator.isForEmulator)
    guard let signature else { return try authenticator.serviceAccount(of: request) }
    return authenticator.caller(signedBy: signature)
  }

  /// Responds with an error in the form of Cloud Storage's API.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    StorageContext.refuse(error, .cloud, responder)
  }

  private func signedURL(_ request: borrowing HTTPRequest, _ parameters: QueryParameters) -> SignedURL {
    let (path, query) = request.target.pathAndQuery
    return SignedURL(path, query, parameters, request, host: StorageContext.host(of: request))
  }

  /// Reads the parts that all requests have in common.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the query is malformed.
  private func storageRequest(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> StorageRequest {
    let parameters = try StorageContext.parameters(of: request)
    return context.storageRequest(.cloud, SignedURL.trusted(parameters), request, call)
  }
}
