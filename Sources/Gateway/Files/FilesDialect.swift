import DatabaseService
import DocumentModel
import Files
import Transport

/// Files over HTTP: the dialect of Firebase's clients under `/v0/b`, and the one of Cloud Storage.
///
/// Requests that bring content are taken as they arrive, all others whole.
final class FilesDialect: Sendable {
  private let files: LazyFileStore
  private let authenticator: Authenticator
  private let judge: FilesJudge
  private let isEmulator: Bool
  private let scheme: String

  init(_ files: LazyFileStore, _ authenticator: Authenticator, isEmulator: Bool, usesTLS: Bool) {
    self.files = files
    self.authenticator = authenticator
    self.isEmulator = isEmulator
    scheme = usesTLS ? "https" : "http"
    judge = FilesJudge(explains: isEmulator)
  }

  /// Where requests about files go, behind the path's first part.
  enum Place { case firebase }

  /// The dialect that a path belongs to, and the rest of the path; `nil` where it is none of the files'.
  static func place(_ path: UnsafeRawBufferPointer) -> (Place, UnsafeRawBufferPointer)? {
    if let rest = path.dropping("/v0/b/") { return (.firebase, rest) }
    return nil
  }

  /// Answers a request that came whole.
  func handle(
    _ place: Place, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) {
    // A body of no bytes is content too; requests with one pass `openBody` first.
    if let sink = openBody(place, path, query, request, exchange) {
      sink.received(request.body)
      return sink.ended()
    }
    guard exchange.isAwaitingReply, let call = call(place, query, request, exchange) else { return }
    switch place {
    case .firebase: FirebaseFiles(call).handle(path, request)
    }
  }

  /// What takes the body of a request that brings content; `nil` for all others, and where it was answered already.
  func openBody(
    _ place: Place, _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ exchange: Exchange
  ) -> (any BodySink)? {
    guard request.method == .post || request.method == .put else { return nil }
    switch place {
    case .firebase:
      guard FirebaseFiles.bringsContent(query, request) else { return nil }
      guard let call = call(place, query, request, exchange) else { return nil }
      return FirebaseFiles(call).openBody(path, request)
    }
  }

  /// Reads what all calls have in common; answers and returns `nil` where it cannot.
  private func call(
    _ place: Place, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ exchange: Exchange
  ) -> FilesCall? {
    var reply = Reply(exchange, request)
    reply.exposedHeaders = Self.exposedHeaders
    let dialect = FilesCall.Dialect.firebase
    func refuse(_ status: Int, _ message: String, _ reason: StaticString) {
      let answer = FilesErrorAnswer(status: status, message: message, reason: reason)
      reply.sendJSON(answer.json(dialect), status: status)
    }
    let parameters: QueryParameters
    do { parameters = try QueryParameters(query) } catch {
      refuse(400, Status(error, database: nil).message, "invalid")
      return nil
    }
    let caller: Caller
    do throws(Status) { caller = try authenticator.caller(of: request) } catch {
      refuse(401, error.message, "authError")
      return nil
    }
    do throws(FilesError) {
      let host = request.text("x-forwarded-host") ?? request.text("host") ?? "localhost"
      let scheme = request.text("x-forwarded-proto").flatMap { $0 == "https" ? $0 : nil } ?? scheme
      return FilesCall(
        dialect: dialect, method: request.method, parameters: parameters, reply: reply, caller: caller,
        origin: "\(scheme)://\(host)", store: try files.store(), judge: judge)
    } catch {
      let answer = FilesErrorAnswer(error, dialect)
      refuse(answer.status, answer.message, answer.reason)
      return nil
    }
  }

  private static let exposedHeaders: StaticString = """
    ETag,Content-Type,Content-Range,Content-Disposition,Location,Range,X-Firebase-Storage-Version,X-Goog-Hash,\
    X-Goog-Generation,X-Goog-Metageneration,X-Goog-Upload-URL,X-Goog-Upload-Status,X-Goog-Upload-Command,\
    X-Goog-Upload-Protocol,X-Goog-Upload-Size-Received,X-Goog-Upload-Chunk-Granularity,X-Goog-Upload-Control-URL,\
    X-Goog-Upload-Header-Content-Length,X-Goog-Upload-Header-Content-Type,X-GUploader-UploadID
    """
}
