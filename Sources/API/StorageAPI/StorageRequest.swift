import Basics
import DatabaseService
import DocumentModel
import Files
import FileService
import GatewayCore
import Transport
import WireFormat

/// One request to either storage API: its parameters and caller, and the functions that respond to it.
struct StorageRequest: Sendable {
  /// The API, which decides the form of errors and metadata.
  enum API: Sendable { case firebase, cloud }

  let api: API
  var parameters: QueryParameters
  /// The members of the response that the client requests, or `nil` for all. Only Cloud Storage's API has it.
  var fields: FieldSelection?
  let responder: Responder
  let caller: Caller
  /// `http://host:port`, as the client reaches the server.
  let origin: String
  let service: StorageService
  /// Receives the response instead of the client if the request is part of a batch.
  var answered: (@Sendable (_ status: Int, _ type: StaticString?, _ body: [UInt8]) -> Void)?

  // MARK: - Work that waits for a disk

  private static let workers = BoundedWorkers(
    "files", threads: WorkerLimits.filesThreadsMax, unfinishedMax: WorkerLimits.filesUnfinishedMax)

  /// Runs work that may wait for the disk on a worker, then `send` with its result, or `fail`, on the loop. Responds
  /// with 503 if too many requests wait already, unless `always`, for work that must close an open file.
  func work<Result: Sendable>(
    always: Bool = false, _ body: @escaping @Sendable () throws(FilesError) -> Result,
    then send: @escaping @Sendable (Result) -> Void
  ) {
    let job: BoundedWorkers.Job = {
      do throws(FilesError) {
        let result = try body()
        responder.onLoop { send(result) }
      } catch {
        responder.onLoop { [error] in fail(error) }
      }
    }
    if always {
      Self.workers.runAlways(job)
    } else if !Self.workers.run(job) {
      fail(StorageErrorResponse(status: 503, message: "The server is busy. Try again later.", reason: "backendError"))
    }
  }

  // MARK: - Responses

  /// Responds with an object's metadata, and with the outcome of the documents that were committed with it.
  func send(
    _ object: StoredObject, _ outcome: CommitOutcome? = nil, headers: (inout HeaderWriter) -> Void = { _ in }
  ) {
    var json = JSONWriter(.compact)
    switch api {
    case .firebase: json.appendFirebaseObject(object)
    case .cloud: json.appendCloudObject(object, origin: origin, outcome)
    }
    sendJSON(json.finish(), .compact) { writer in
      if api == .cloud { writer.add("ETag", object.etag) }
      headers(&writer)
    }
  }

  /// Responds with a JSON object.
  func send(_ write: (inout JSONWriter) -> Void) {
    let style = parameters.wantsPrettyPrint && api == .cloud ? JSONWriter.Style.pretty : .compact
    var json = JSONWriter(style)
    json.beginObject()
    write(&json)
    json.endObject()
    sendJSON(json.finish(), style)
  }

  /// Responds with the requested members of a JSON text.
  func sendJSON(_ json: [UInt8], _ style: JSONWriter.Style, _ headers: (inout HeaderWriter) -> Void = { _ in }) {
    sendBody(
      fields?.apply(to: json, style) ?? json, type: "application/json; charset=UTF-8", status: 200, headers)
  }

  /// Responds without a body.
  func sendEmpty(_ status: Int, headers: (inout HeaderWriter) -> Void = { _ in }) {
    if let answered { return answered(status, nil, []) }
    responder.exchange.respond(
      status: status,
      headers: { writer in
        // The headers may contain an upload's address. A 304 response must not change the cached response's
        // headers.
        if status != 304 { writer.add("Cache-Control", "private, no-store") }
        responder.writeOrigin(&writer)
        headers(&writer)
      }, body: { _ in })
  }

  /// Responds with text.
  func sendText(_ status: Int, _ text: String, headers: (inout HeaderWriter) -> Void = { _ in }) {
    sendBody(Array(text.utf8), type: "text/plain; charset=UTF-8", status: status, headers)
  }

  /// Responds with bytes.
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

  /// Responds with an error.
  func fail(_ error: FilesError, headers: (inout HeaderWriter) -> Void = { _ in }) {
    fail(StorageErrorResponse(error, api), headers: headers)
  }

  func fail(_ response: StorageErrorResponse, headers: (inout HeaderWriter) -> Void = { _ in }) {
    if response.fault != nil { responder.onLoop { response.logFault(to: responder.exchange) } }
    if response.status == 304 { return sendEmpty(304, headers: headers) }
    if api == .cloud, parameters.value("alt") == "media" {
      return sendText(response.status, response.message, headers: headers)
    }
    sendBody(response.json(api), type: "application/json; charset=UTF-8", status: response.status, headers)
  }

  /// Responds with 404: no such path or method.
  func failUnknown() {
    sendBody(
      StorageErrorResponse(status: 404, message: "Not Found", reason: "notFound").json(api),
      type: "application/json; charset=UTF-8", status: 404, { _ in })
  }
}

/// The response for an error: status, message and reason, in the words of the API.
struct StorageErrorResponse: Error {
  var status: Int
  var message: String
  var reason: StaticString
  /// The message for the server's log, if it contains more than the client may see.
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
    case .uploadLost:
      // Clients begin a new upload then: those of Cloud Storage after 404 and 410, of which some know only 410.
      self.init(
        status: isFirebase ? 404 : 410, message: "The upload was lost. Begin a new one.",
        reason: isFirebase ? "notFound" : "gone")
    case .wrongOffset(let expected, let given):
      self.init(
        status: 400, message: "Wrong offset: the upload has \(expected) bytes, but this part starts at \(given).",
        reason: "invalid")
    case .uploadOver: self.init(status: 400, message: "The upload is already finished or canceled.", reason: "invalid")
    case .uploadBusy:
      self.init(
        status: 503, message: "Another request is sending to this upload. Try again.", reason: "backendError")
    case .tooManyUploads:
      self.init(
        status: 429, message: "Too many uploads are in progress. Try again later.", reason: "rateLimitExceeded")
    case .tooManyUploadsOfOwner(let countMax):
      self.init(
        status: 429,
        message: "You have \(countMax) uploads in progress. Finish or cancel some, or try again later.",
        reason: "rateLimitExceeded")
    case .lengthRequired(let bytesMax):
      self.init(
        status: 411,
        message: "An upload of more than \(bytesMax) bytes must declare its length: in Content-Length, or if it is "
          + "resumable, in X-Goog-Upload-Header-Content-Length.", reason: "required")
    case .undecodable:
      self.init(
        status: 406,
        message: "The object's contentEncoding is gzip, but its content is not. Send Accept-Encoding: gzip to "
          + "download the stored bytes, or correct the metadata.", reason: "invalid")
    case .full:
      // Clients give up on these statuses. They would retry others for minutes.
      self.init(
        status: isFirebase ? 402 : 507, message: "The server has no storage space left for files.",
        reason: "quotaExceeded")
      fault =
        "no space for files: the disk of the data directory is full, or the limit of --map-size or "
        + "--in-memory is reached; free space or raise the limit"
    case .overQuota(let error):
      // Firebase's SDKs report 402 as `storage/quota-exceeded`. No client repeats a request after these statuses.
      self.init(status: isFirebase ? 402 : 403, message: error.message, reason: "quotaExceeded")
    case .tooLarge(let bytesMax):
      self.init(
        status: 413, message: "The content is too large: this server stores files of at most \(bytesMax) bytes.",
        reason: "uploadTooLarge")
    case .notCached, .sharedContent:
      // Clients retry this status.
      self.init(status: 503, message: "The content of files cannot be reached now. Try again.", reason: "backendError")
      fault = "shared files: \(error)"
      if case .sharedContent(let text) = error { fault = "shared files: \(text)" }
    case .commitRefused(let code, let message, let fault):
      let status = ErrorJSON.httpStatus(Status.Code(rawValue: code) ?? .internal)
      self.init(status: status, message: message, reason: status == 409 ? "conflict" : "invalid")
      self.fault = fault
    case .denied(let text): self.init(status: 403, message: text, reason: "forbidden")
    case .damaged(let name):
      self.init(
        status: 500,
        message: "The stored object \(name.bucket)/\(name.name) is damaged. Run `hearth check` on the data directory.",
        reason: "internalError")
      fault = "\(error)"
    case .notOwner:
      // Clients retry this status, and the node that relayed the request asks the next owner.
      self.init(status: 503, message: "This node does not own the files now. Try again.", reason: "backendError")
    case .storage(let storage):
      self.init(status: 500, message: "Internal error.", reason: "internalError")
      fault = "\(storage)"
    case .system:
      self.init(status: 500, message: "Internal error.", reason: "internalError")
      fault = "\(error)"
    }
  }

  /// Logs the fault, if the server is at fault.
  func logFault(to exchange: Exchange) {
    if let fault { exchange.logFailure(fault, status: status) }
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
