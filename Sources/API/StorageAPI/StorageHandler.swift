package import GatewayCore
package import Accounts
package import DatabaseService
import DocumentModel
package import Files
package import Transport

/// The parts that a gateway needs to serve files.
package struct FilesService: Sendable {
  package var store: LazyFileStore
  package var rules: FileRules
  /// The project whose documents rules may read.
  package var project: String?

  package init(store: LazyFileStore, rules: FileRules, project: String?) {
    self.store = store
    self.rules = rules
    self.project = project
  }
}

/// Serves files over HTTP: the API of Firebase clients under `/v0/b`, Cloud Storage's JSON API, and signed URLs.
///
/// It reads the body of an upload as it arrives, and the body of any other request as a whole.
package final class StorageHandler: Sendable {
  private let files: FilesService
  private let authenticator: Authenticator
  private let keys: ServiceKeys
  private let authorizer: StorageAuthorizer
  private let trustsMissingCredentials: Bool
  private let scheme: String

  /// Creates a handler for files.
  package init(
    _ files: FilesService, _ service: FirestoreService, _ authenticator: Authenticator, keys: ServiceKeys, usesTLS: Bool
  ) {
    self.files = files
    self.keys = keys
    self.authenticator = authenticator
    trustsMissingCredentials = service.mode.trustsMissingCredentials
    scheme = usesTLS ? "https" : "http"
    authorizer = StorageAuthorizer(service: service, rules: files.rules, project: files.project)
  }

  /// The APIs for files, by path.
  package enum Route {
    case firebase
    /// Cloud Storage: buckets and objects, below `…/b`.
    case cloud
    /// Cloud Storage: uploads, below `…/b`.
    case cloudUpload
    /// Cloud Storage: several requests in one.
    case cloudBatch
    /// One object, with a signed URL.
    case signed
    /// Control of an emulator by test suites.
    case control
  }

  /// Returns the route of a path and a query, and the rest of the path; `nil` if the request is not about files.
  package static func route(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer
  ) -> (Route, UnsafeRawBufferPointer)? {
    route(path) ?? (!query.isEmpty && SignedURL.isSigned(query) ? (.signed, path) : nil)
  }

  /// Returns the route of a path alone, and the rest of the path; `nil` if the path is not about files.
  package static func route(_ path: UnsafeRawBufferPointer) -> (Route, UnsafeRawBufferPointer)? {
    func below(_ prefix: StaticString) -> UnsafeRawBufferPointer? {
      guard let rest = path.dropping(prefix) else { return nil }
      guard let next = rest.first else { return rest }
      return next == UInt8(ascii: "/") || next == UInt8(ascii: "?") ? rest : nil
    }
    if let rest = path.dropping("/v0/b/") { return (.firebase, rest) }
    if let rest = below("/storage/v1/b") ?? below("/download/storage/v1/b") ?? below("/b") { return (.cloud, rest) }
    if let rest = below("/upload/storage/v1/b") { return (.cloudUpload, rest) }
    if let rest = below("/batch/storage/v1") { return (.cloudBatch, rest) }
    if let rest = path.dropping("/internal/") { return (.control, rest) }
    return nil
  }

  /// Handles a request whose body has arrived completely.
  package func handle(
    _ route: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) {
    // A request with an empty body can be an upload too. Uploads with a longer body go to `openBody` first.
    if let sink = openBody(route, path, query, request, exchange) {
      sink.received(request.body)
      return sink.ended()
    }
    guard exchange.isAwaitingResponse, let storageRequest = storageRequest(route, path, query, request, exchange) else {
      return
    }
    switch route {
    case .firebase: FirebaseStorageHandler(storageRequest).handle(path, request)
    case .cloud, .cloudUpload: CloudStorageHandler(storageRequest).handle(route, path, request)
    case .cloudBatch: CloudBatch.handle(storageRequest, request)
    case .signed: SignedURLHandler(storageRequest).handle(path, request)
    case .control: FilesControl(storageRequest, rules: files.rules).handle(path, request)
    }
  }

  /// Opens the body of an upload. Returns `nil` for all other requests, and if the response was already sent.
  package func openBody(
    _ route: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) -> (any BodySink)? {
    guard request.method == .post || request.method == .put else { return nil }
    switch route {
    case .firebase:
      guard FirebaseStorageHandler.bringsContent(query, request) else { return nil }
      guard let storageRequest = storageRequest(route, path, query, request, exchange) else { return nil }
      return FirebaseStorageHandler(storageRequest).openBody(path, request)
    case .cloudUpload:
      guard CloudStorageHandler.bringsContent(query, request) else { return nil }
      guard let storageRequest = storageRequest(route, path, query, request, exchange) else { return nil }
      return CloudStorageHandler(storageRequest).openBody(path, request)
    case .signed:
      guard request.method == .put, let storageRequest = storageRequest(route, path, query, request, exchange) else {
        return nil
      }
      return SignedURLHandler(storageRequest).openBody(path, request)
    case .cloud, .cloudBatch, .control: return nil
    }
  }

  /// Reads the parts that all requests have in common, or responds with an error and returns `nil`.
  private func storageRequest(
    _ route: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) -> StorageRequest? {
    var responder = Responder(exchange, request)
    responder.exposedHeaders = Self.exposedHeaders
    let api = route == .firebase ? StorageRequest.API.firebase : .cloud
    func refuse(_ status: Int, _ message: String, _ reason: StaticString) {
      let response = StorageErrorResponse(status: status, message: message, reason: reason)
      responder.sendJSON(response.json(api), status: status)
    }
    let parameters: QueryParameters
    do { parameters = try QueryParameters(query) } catch {
      refuse(400, Status(error, database: nil).message, "invalid")
      return nil
    }
    if route == .signed { return signedStorageRequest(path, query, parameters, responder, request) }
    let caller: Caller
    do throws(Status) { caller = try authenticator.caller(of: request) } catch {
      refuse(401, error.message, "authError")
      return nil
    }
    if route != .firebase, !isAdmin(caller, request), !resumesUpload(route, parameters, request) {
      // Rules do not apply to this API: only administrators may use it.
      let hasCredentials = request.header("authorization") != nil
      refuse(hasCredentials ? 403 : 401, hasCredentials ? "Missing admin credentials." : "Login Required.", "authError")
      return nil
    }
    if route != .firebase, Self.hasEncryptionKey(parameters, request) {
      let response = StorageErrorResponse(Self.noKeys, api)
      refuse(response.status, response.message, response.reason)
      return nil
    }
    do throws(FilesError) {
      return try makeStorageRequest(api, parameters, responder, caller, request)
    } catch {
      let response = StorageErrorResponse(error, api)
      response.logFault(to: exchange)
      refuse(response.status, response.message, response.reason)
      return nil
    }
  }

  private func makeStorageRequest(
    _ api: StorageRequest.API, _ parameters: QueryParameters, _ responder: Responder, _ caller: Caller,
    _ request: borrowing HTTPRequest
  ) throws(FilesError) -> StorageRequest {
    StorageRequest(
      api: api, method: request.method, parameters: parameters, responder: responder, caller: caller,
      origin: origin(request), store: try files.store.store(), authorizer: authorizer)
  }

  /// Returns the request of a valid signed URL, which has its signer's rights, or responds with an error and
  /// returns `nil`.
  private func signedStorageRequest(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ parameters: QueryParameters,
    _ responder: Responder,
    _ request: borrowing HTTPRequest
  ) -> StorageRequest? {
    do throws(FilesError) {
      var storageRequest = try makeStorageRequest(.cloud, parameters, responder, .admin, request)
      let host = Self.host(request.text("x-forwarded-host")) ?? Self.host(request.text("host")) ?? "localhost"
      let url = SignedURL(path, query, parameters, request, host: host)
      try url.check(keys, nowSeconds: storageRequest.store.now / 1_000_000)
      storageRequest.parameters = url.trustedParameters
      return storageRequest
    } catch {
      let response = StorageErrorResponse(error, .cloud)
      response.logFault(to: responder.exchange)
      responder.sendJSON(response.json(.cloud), status: response.status)
      return nil
    }
  }

  /// Whether a request without credentials continues an upload. The upload's ID suffices, as with a signed URL.
  private func resumesUpload(_ route: Route, _ parameters: QueryParameters, _ request: borrowing HTTPRequest) -> Bool {
    route == .cloudUpload && request.method == .put && parameters.value("uploadId") != nil
      && request.header("authorization") == nil
  }

  /// Returns `http://host:port` as the client or its proxy names it. It is used only for URLs in the response, and
  /// no cache keeps those: a client that sends a wrong host misleads only itself.
  private func origin(_ request: borrowing HTTPRequest) -> String {
    let host = Self.host(request.text("x-forwarded-host")) ?? Self.host(request.text("host")) ?? "localhost"
    let isForwardedTLS = request.text("x-forwarded-proto").map { $0.split(separator: ",").first == "https" } ?? false
    return "\(isForwardedTLS ? "https" : scheme)://\(host)"
  }

  /// Returns the host with its port, the first if several proxies added one; `nil` if the header has another form.
  static func host(_ header: String?) -> String? {
    guard let host = header?.prefix(while: { $0 != "," && $0 != " " }), (1...255).contains(host.utf8.count),
      host.utf8.allSatisfy({ byte in
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._:[]".utf8.contains(byte)
      })
    else { return nil }
    return String(host)
  }

  /// Whether a request to the Cloud Storage API has administrator rights. In emulator mode clients send no
  /// credentials, or those of any service account.
  private func isAdmin(_ caller: Caller, _ request: borrowing HTTPRequest) -> Bool {
    if caller.isAdmin { return true }
    return trustsMissingCredentials && request.header("authorization") == nil
  }

  /// The error for requests with encryption keys. If the server ignored the keys, clients would rely on encryption
  /// that does not exist.
  static let noKeys = FilesError.invalid(
    "This server does not support encryption keys. Remove the key, or encrypt the content before you upload it.")

  /// Whether a request to the Cloud Storage API contains an encryption key.
  static func hasEncryptionKey(_ parameters: QueryParameters, _ request: borrowing HTTPRequest) -> Bool {
    request.header("x-goog-encryption-algorithm") != nil
      || request.header("x-goog-copy-source-encryption-algorithm") != nil
      || parameters.value("kmsKeyName") != nil || parameters.value("destinationKmsKeyName") != nil
  }

  private static let exposedHeaders: StaticString = """
    ETag,Content-Type,Content-Range,Content-Disposition,Location,Range,X-Firebase-Storage-Version,X-Goog-Hash,\
    X-Goog-Generation,X-Goog-Metageneration,X-Goog-Upload-URL,X-Goog-Upload-Status,X-Goog-Upload-Command,\
    X-Goog-Upload-Protocol,X-Goog-Upload-Size-Received,X-Goog-Upload-Chunk-Granularity,X-Goog-Upload-Control-URL,\
    X-Goog-Upload-Header-Content-Length,X-Goog-Upload-Header-Content-Type,X-GUploader-UploadID
    """
}
