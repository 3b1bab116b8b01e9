import Accounts
package import DatabaseService
import DocumentModel
package import Files
import Transport

/// What a gateway needs to serve files.
package struct FilesService: Sendable {
  /// Where they are.
  package var store: LazyFileStore
  /// What guards them.
  package var rules: FileRules
  /// The project whose documents rules may read.
  package var project: String?

  /// Joins the parts.
  package init(store: LazyFileStore, rules: FileRules, project: String?) {
    self.store = store
    self.rules = rules
    self.project = project
  }
}

/// Files over HTTP: the dialect of Firebase's clients under `/v0/b`, and the one of Cloud Storage.
///
/// Requests that bring content are taken as they arrive, all others whole.
final class StorageHandler: Sendable {
  private let files: FilesService
  private let authenticator: Authenticator
  private let keys: ServiceKeys
  private let authorizer: StorageAuthorizer
  private let isEmulator: Bool
  private let scheme: String

  init(
    _ files: FilesService, _ service: FirestoreService, _ authenticator: Authenticator, keys: ServiceKeys, usesTLS: Bool
  ) {
    self.files = files
    self.keys = keys
    self.authenticator = authenticator
    isEmulator = service.admission == .everybody
    scheme = usesTLS ? "https" : "http"
    authorizer = StorageAuthorizer(service: service, rules: files.rules, project: files.project)
  }

  /// Where requests about files go, behind the path's first part.
  enum Route {
    case firebase
    /// Cloud Storage: buckets and objects, below `…/b`.
    case cloud
    /// Cloud Storage: uploads, below `…/b`.
    case cloudUpload
    /// Cloud Storage: several requests in one.
    case cloudBatch
    /// One object, by a URL that a key signed.
    case signed
    /// What test suites do to an emulator.
    case control
  }

  /// The dialect that a path and a query belong to, and the rest of the path; `nil` where it is none of the files'.
  static func place(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer
  ) -> (Route, UnsafeRawBufferPointer)? {
    place(path) ?? (!query.isEmpty && SignedURL.isSigned(query) ? (.signed, path) : nil)
  }

  /// The dialect that a path alone belongs to, and the rest of the path; `nil` where it is none of the files'.
  static func place(_ path: UnsafeRawBufferPointer) -> (Route, UnsafeRawBufferPointer)? {
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

  /// Answers a request that came whole.
  func handle(
    _ place: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) {
    // A body of no bytes is content too; requests with one pass `openBody` first.
    if let sink = openBody(place, path, query, request, exchange) {
      sink.received(request.body)
      return sink.ended()
    }
    guard exchange.isAwaitingResponse, let call = call(place, path, query, request, exchange) else { return }
    switch place {
    case .firebase: FirebaseFiles(call).handle(path, request)
    case .cloud, .cloudUpload: CloudFiles(call).handle(place, path, request)
    case .cloudBatch: CloudBatch.handle(call, request)
    case .signed: SignedFiles(call).handle(path, request)
    case .control: FilesControl(call, rules: files.rules).handle(path, request)
    }
  }

  /// What takes the body of a request that brings content; `nil` for all others, and where it was answered already.
  func openBody(
    _ place: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) -> (any BodySink)? {
    guard request.method == .post || request.method == .put else { return nil }
    switch place {
    case .firebase:
      guard FirebaseFiles.bringsContent(query, request) else { return nil }
      guard let call = call(place, path, query, request, exchange) else { return nil }
      return FirebaseFiles(call).openBody(path, request)
    case .cloudUpload:
      guard CloudFiles.bringsContent(query, request) else { return nil }
      guard let call = call(place, path, query, request, exchange) else { return nil }
      return CloudFiles(call).openBody(path, request)
    case .signed:
      guard request.method == .put, let call = call(place, path, query, request, exchange) else { return nil }
      return SignedFiles(call).openBody(path, request)
    case .cloud, .cloudBatch, .control: return nil
    }
  }

  /// Reads what all calls have in common; answers and returns `nil` where it cannot.
  private func call(
    _ place: Route, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) -> StorageRequest? {
    var responder = Responder(exchange, request)
    responder.exposedHeaders = Self.exposedHeaders
    let api = place == .firebase ? StorageRequest.API.firebase : .cloud
    func refuse(_ status: Int, _ message: String, _ reason: StaticString) {
      let answer = StorageErrorResponse(status: status, message: message, reason: reason)
      responder.sendJSON(answer.json(api), status: status)
    }
    let parameters: QueryParameters
    do { parameters = try QueryParameters(query) } catch {
      refuse(400, Status(error, database: nil).message, "invalid")
      return nil
    }
    if place == .signed { return signedCall(path, query, parameters, responder, request) }
    let caller: Caller
    do throws(Status) { caller = try authenticator.caller(of: request) } catch {
      refuse(401, error.message, "authError")
      return nil
    }
    if place != .firebase, !isAdmin(caller, request), !goesOn(place, parameters, request) {
      // Rules do not grant this dialect's calls: only administrators make them.
      let isNobody = request.header("authorization") == nil
      refuse(isNobody ? 401 : 403, isNobody ? "Login Required." : "Missing admin credentials.", "authError")
      return nil
    }
    if place != .firebase, Self.namesKey(parameters, request) {
      let answer = StorageErrorResponse(Self.noKeys, api)
      refuse(answer.status, answer.message, answer.reason)
      return nil
    }
    do throws(FilesError) {
      return try makeCall(api, parameters, responder, caller, request)
    } catch {
      let answer = StorageErrorResponse(error, api)
      answer.tell(exchange)
      refuse(answer.status, answer.message, answer.reason)
      return nil
    }
  }

  private func makeCall(
    _ api: StorageRequest.API, _ parameters: QueryParameters, _ responder: Responder, _ caller: Caller,
    _ request: borrowing HTTPRequest
  ) throws(FilesError) -> StorageRequest {
    StorageRequest(
      api: api, method: request.method, parameters: parameters, responder: responder, caller: caller,
      origin: origin(request), store: try files.store.store(), authorizer: authorizer)
  }

  /// The call of a signed URL, which is its signer's; answers and returns `nil` where nobody signed it.
  private func signedCall(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ parameters: QueryParameters, _ responder: Responder,
    _ request: borrowing HTTPRequest
  ) -> StorageRequest? {
    do throws(FilesError) {
      var call = try makeCall(.cloud, parameters, responder, .admin, request)
      let host = Self.host(request.text("x-forwarded-host")) ?? Self.host(request.text("host")) ?? "localhost"
      let url = SignedURL(path, query, parameters, request, host: host)
      try url.check(keys, nowSeconds: call.store.now / 1_000_000)
      call.parameters = url.trustedParameters
      return call
    } catch {
      let answer = StorageErrorResponse(error, .cloud)
      answer.tell(responder.exchange)
      responder.sendJSON(answer.json(.cloud), status: answer.status)
      return nil
    }
  }

  /// Whether a request goes on with an upload: who knows its id may, as with a signed URL that began it.
  private func goesOn(_ place: Route, _ parameters: QueryParameters, _ request: borrowing HTTPRequest) -> Bool {
    place == .cloudUpload && request.method == .put && parameters.value("uploadId") != nil
      && request.header("authorization") == nil
  }

  /// `http://host:port`, as the client or the proxy before it says. It stands in the URLs of the answer and decides
  /// nothing: who lies about it is sent astray, and nobody else, since no cache keeps the answer.
  private func origin(_ request: borrowing HTTPRequest) -> String {
    let host = Self.host(request.text("x-forwarded-host")) ?? Self.host(request.text("host")) ?? "localhost"
    let isForwardedTLS = request.text("x-forwarded-proto").map { $0.split(separator: ",").first == "https" } ?? false
    return "\(isForwardedTLS ? "https" : scheme)://\(host)"
  }

  /// A host with or without a port, the first where a chain of proxies names several; `nil` for anything else.
  static func host(_ header: String?) -> String? {
    guard let host = header?.prefix(while: { $0 != "," && $0 != " " }), (1...255).contains(host.utf8.count),
      host.utf8.allSatisfy({ byte in
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._:[]".utf8.contains(byte)
      })
    else { return nil }
    return String(host)
  }

  /// Whether a request of Cloud Storage's clients is an administrator's; in emulator mode they send no credentials, or
  /// those of some service account.
  private func isAdmin(_ caller: Caller, _ request: borrowing HTTPRequest) -> Bool {
    if case .admin = caller { return true }
    return isEmulator && request.header("authorization") == nil
  }

  /// Silence would let clients believe in an encryption that is not there.
  static let noKeys = FilesError.invalid(
    "This server takes no encryption keys. Leave the key out, or encrypt before you send.")

  /// Whether a request of Cloud Storage's clients wants content encrypted with a key of its own, or decrypted.
  static func namesKey(_ parameters: QueryParameters, _ request: borrowing HTTPRequest) -> Bool {
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
