import DatabaseService
import Dispatch
import DocumentModel
import Files
import RulesEngine
import Transport
import WireFormat

/// One call to either dialect of the files: what it says, and how it is answered.
struct StorageRequest: Sendable {
  /// How errors and metadata are written.
  enum API: Sendable { case firebase, cloud }

  let api: API
  var method: HTTPMethod
  var parameters: QueryParameters
  let responder: Responder
  let caller: Caller
  /// `http://host:port`, as the client reaches the server.
  let origin: String
  let store: FileStore
  let authorizer: StorageAuthorizer
  /// Where the answer goes instead of to the client: the call is one of a batch.
  var answered: (@Sendable (_ status: Int, _ type: StaticString?, _ body: [UInt8]) -> Void)?

  var isAdmin: Bool { if case .admin = caller { true } else { false } }

  /// Whose share of the uploads under way one that this call begins takes; `nil` for an administrator's. Who has a
  /// signed URL is somebody at an address, and so is a guest: anybody may be any number of guests.
  func uploadOwner(isSigned: Bool = false, _ request: borrowing HTTPRequest) -> UploadOwner? {
    if !isSigned {
      // Only administrators make the calls of this dialect.
      guard api == .firebase, case .user(let auth) = caller else { return nil }
      if let auth, let uid = auth.uid, !auth.isGuest { return .user(uid) }
    }
    return .address(request.clientNetwork)
  }

  // MARK: - Work that waits for a disk

  private static let workers = DispatchQueue(label: "hearth.files", qos: .userInitiated, attributes: .concurrent)

  /// Does what waits for a disk on a worker, and answers on the loop with what comes of it.
  func work<Result: Sendable>(
    _ body: @escaping @Sendable () throws(FilesError) -> Result,
    then send: @escaping @Sendable (Result) -> Void
  ) {
    Self.workers.async {
      do throws(FilesError) {
        let result = try body()
        responder.onLoop { send(result) }
      } catch {
        responder.onLoop { [error] in fail(error) }
      }
    }
  }

  // MARK: - Answers

  /// Answers with an object of JSON.
  func send(status: Int = 200, headers: @escaping (inout HeaderWriter) -> Void = { _ in }, _ write: (inout JSONWriter) -> Void) {
    var json = JSONWriter(parameters.wantsPrettyPrint && api == .cloud ? .pretty : .compact)
    json.beginObject()
    write(&json)
    json.endObject()
    sendBody(json.finish(), type: "application/json; charset=UTF-8", status: status, headers)
  }

  /// Answers without a body.
  func sendEmpty(_ status: Int, headers: (inout HeaderWriter) -> Void = { _ in }) {
    if let answered { return answered(status, nil, []) }
    responder.exchange.respond(
      status: status,
      headers: { writer in
        // It may name an upload. What is not modified keeps what was said of it before.
        if status != 304 { writer.add("Cache-Control", "private, no-store") }
        responder.writeOrigin(&writer)
        headers(&writer)
      }, body: { _ in })
  }

  /// Answers with text.
  func sendText(_ status: Int, _ text: String, headers: (inout HeaderWriter) -> Void = { _ in }) {
    sendBody(Array(text.utf8), type: "text/plain; charset=UTF-8", status: status, headers)
  }

  /// Answers with bytes.
  func sendBody(
    _ body: [UInt8], type: StaticString, status: Int, _ headers: (inout HeaderWriter) -> Void
  ) {
    if let answered { return answered(status, type, body) }
    responder.exchange.respond(
      status: status,
      headers: { writer in
        writer.add("Content-Type", type)
        writer.add("X-Content-Type-Options", "nosniff")
        writer.add("Cache-Control", "private, no-store")
        responder.writeOrigin(&writer)
        headers(&writer)
      }, body: { $0.append(contentsOf: body) })
  }

  /// Answers with an error.
  func fail(_ error: FilesError, headers: (inout HeaderWriter) -> Void = { _ in }) {
    let answer = StorageErrorResponse(error, api)
    if answer.fault != nil { responder.onLoop { answer.tell(responder.exchange) } }
    if answer.status == 304 { return sendEmpty(304, headers: headers) }
    if api == .cloud, parameters.value("alt") == "media" {
      return sendText(answer.status, answer.message, headers: headers)
    }
    sendBody(answer.json(api), type: "application/json; charset=UTF-8", status: answer.status, headers)
  }

  /// Answers that there is nothing of the kind.
  func failUnknown() {
    sendBody(
      StorageErrorResponse(status: 404, message: "Not Found", reason: "notFound").json(api),
      type: "application/json; charset=UTF-8", status: 404, { _ in })
  }
}

/// How an error reads in a dialect.
struct StorageErrorResponse {
  var status: Int
  var message: String
  var reason: StaticString
  /// What is for the server's log, where that is more than the client is told.
  var fault: String?

  init(status: Int, message: String, reason: StaticString) {
    self.status = status
    self.message = message
    self.reason = reason
  }

  init(_ error: FilesError, _ api: StorageRequest.API) {
    let isFirebase = api == .firebase
    switch error {
    case .invalidBucket(let name):
      self.init(status: 400, message: "Invalid bucket name: '\(name)'", reason: "invalid")
    case .invalidName(let why): self.init(status: 400, message: "Invalid object name: \(why).", reason: "invalid")
    case .invalid(let why): self.init(status: 400, message: why, reason: "invalid")
    case .noSuchObject(let name):
      self.init(
        status: 404, message: isFirebase ? "Not Found." : "No such object: \(name.bucket)/\(name.name)",
        reason: "notFound")
    case .noSuchBucket(let name):
      self.init(
        status: 404, message: isFirebase ? "Not Found." : "The specified bucket does not exist: \(name)",
        reason: "notFound")
    case .bucketExists:
      self.init(
        status: 409, message: "Your previous request to create the named bucket succeeded and you already own it.",
        reason: "conflict")
    case .bucketNotEmpty:
      self.init(status: 409, message: "The bucket you tried to delete is not empty.", reason: "conflict")
    case .conditionNotMet(let name):
      self.init(
        status: 412, message: "At least one of the pre-conditions you specified did not hold: \(name).",
        reason: "conditionNotMet")
    case .notModified: self.init(status: 304, message: "Not Modified", reason: "notModified")
    case .checksumMismatch(let kind, let declared, let found):
      self.init(
        status: 400,
        message: "Provided \(kind) \"\(declared)\" doesn't match calculated \(kind) \"\(found)\".", reason: "invalid")
    case .noSuchUpload: self.init(status: 404, message: "No such upload.", reason: "notFound")
    case .wrongOffset(let expected, let given):
      self.init(
        status: 400, message: "The upload stands at byte \(expected), and bytes came for \(given).", reason: "invalid")
    case .uploadOver: self.init(status: 400, message: "The upload is over.", reason: "invalid")
    case .uploadBusy:
      self.init(
        status: 503, message: "Another request sends to this upload; try again.", reason: "backendError")
    case .tooManyUploads:
      self.init(
        status: 429, message: "Too many uploads have begun and not ended; try again later.", reason: "rateLimitExceeded")
    case .tooManyUploadsOfOwner(let countMax):
      self.init(
        status: 429,
        message: "You have begun \(countMax) uploads and not ended them. End some, or try again later.",
        reason: "rateLimitExceeded")
    case .lengthRequired(let bytesMax):
      self.init(
        status: 411,
        message: "An upload of more than \(bytesMax) bytes must say how long it is: in Content-Length, or where it "
          + "comes in parts, in X-Goog-Upload-Header-Content-Length.", reason: "required")
    case .undecodable:
      self.init(
        status: 406,
        message: "The object's contentEncoding is gzip, and its content is not. Ask with Accept-Encoding: gzip for "
          + "what is stored, or correct its metadata.", reason: "invalid")
    case .full:
      // A status that makes clients give up: those that retry would do so for minutes.
      self.init(
        status: isFirebase ? 402 : 507, message: "There is no room left for files on this server.",
        reason: "quotaExceeded")
      fault = "no room for files: the disk of the data directory, or what --map-size or --in-memory allow, is full; "
        + "free some, or allow more"
    case .commitRefused(let status, let message, let fault):
      self.init(status: status, message: message, reason: status == 409 ? "conflict" : "invalid")
      self.fault = fault
    case .denied(let text): self.init(status: 403, message: text, reason: "forbidden")
    case .damaged(let name):
      self.init(
        status: 500,
        message: "The stored object \(name.bucket)/\(name.name) is damaged; run `hearth check` on the data directory.",
        reason: "internalError")
      fault = "\(error)"
    case .storage(let storage):
      self.init(status: 500, message: "Internal error.", reason: "internalError")
      fault = "\(storage)"
    case .system:
      self.init(status: 500, message: "Internal error.", reason: "internalError")
      fault = "\(error)"
    }
  }

  /// Tells the log of what is a fault of the server's.
  func tell(_ exchange: Exchange) {
    if let fault { exchange.tellFailure(fault, status: status) }
  }

  func json(_ api: StorageRequest.API) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("error")
    json.beginObject()
    json.key("code")
    json.number(status)
    json.key("message")
    json.string(message)
    if api == .cloud {
      json.key("errors")
      json.beginArray()
      json.beginObject()
      json.key("message")
      json.string(message)
      json.key("domain")
      json.string("global")
      json.key("reason")
      json.string(reason.description)
      json.endObject()
      json.endArray()
    }
    json.endObject()
    json.endObject()
    return json.finish()
  }
}
