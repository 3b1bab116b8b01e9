import DatabaseService
import Files
package import FileService
import GatewayCore
import Transport

/// The parts that the three APIs for files share. All of them call the same service: the API of Firebase clients, Cloud
/// Storage's JSON API, and signed URLs.
package struct StorageContext: Sendable {
  let service: StorageService
  private let scheme: String

  /// Creates the context of a server.
  ///
  /// - Parameter usesTLS: whether clients reach the server by `https`.
  package init(_ service: StorageService, usesTLS: Bool) {
    self.service = service
    scheme = usesTLS ? "https" : "http"
  }

  /// Reads the parts that all requests have in common.
  func storageRequest(
    _ api: StorageRequest.API, _ parameters: QueryParameters, _ request: borrowing HTTPRequest, _ call: RoutedCall
  ) -> StorageRequest {
    var responder = call.responder
    responder.exposedHeaders = Self.exposedHeaders
    return StorageRequest(
      api: api, parameters: parameters, responder: responder, caller: call.caller, origin: origin(request),
      service: service)
  }

  /// Returns the decoded query of a request.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the percent-encoding is malformed.
  static func parameters(of request: borrowing HTTPRequest) throws(FilesError) -> QueryParameters {
    do { return try QueryParameters(request.target.pathAndQuery.query) } catch {
      throw .invalid("Malformed percent-encoding in the query of the URL.")
    }
  }

  /// Responds to a request that was refused before its handler was called.
  static func refuse(_ error: any Error, _ api: StorageRequest.API, _ responder: Responder) {
    var responder = responder
    responder.exposedHeaders = exposedHeaders
    let response =
      switch error {
      case let error as FilesError: StorageErrorResponse(error, api)
      case let error as StorageErrorResponse: error
      case let error as Status where error.code == .resourceExhausted:
        StorageErrorResponse(status: 429, message: error.message, reason: "rateLimitExceeded")
      // The accounts belong to another node now. A client that got 401 would sign its user out.
      case let error as Status where error.code == .unavailable:
        StorageErrorResponse(
          status: 503, message: "The service is currently unavailable. Try again.", reason: "backendError")
      case let error as Status:
        StorageErrorResponse(
          status: error.code == .permissionDenied ? 403 : 401, message: error.message, reason: "authError")
      default: StorageErrorResponse(status: 404, message: "Not Found", reason: "notFound")
      }
    response.logFault(to: responder.exchange)
    responder.sendJSON(response.json(api), status: response.status)
  }

  /// Returns `http://host:port` as the client or its proxy names it. It is used only for URLs in the response, and
  /// no cache keeps those: a client that sends a wrong host misleads only itself.
  private func origin(_ request: borrowing HTTPRequest) -> String {
    "\(request.isForwardedTLS ? "https" : scheme)://\(Self.host(of: request))"
  }

  /// Returns the host with its port, as the client or its proxy names it.
  static func host(of request: borrowing HTTPRequest) -> String {
    host(request.text("x-forwarded-host")) ?? host(request.publicHost) ?? "localhost"
  }

  /// Returns the host in a header, the first if several proxies added one; `nil` if the header has another form.
  private static func host(_ header: String?) -> String? {
    guard let host = header?.prefix(while: { $0 != "," && $0 != " " }), (1...255).contains(host.utf8.count),
      host.utf8.allSatisfy({ byte in
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._:[]".utf8.contains(byte)
      })
    else { return nil }
    return String(host)
  }

  private static let exposedHeaders: StaticString = """
    ETag,Content-Type,Content-Range,Content-Disposition,Location,Range,X-Firebase-Storage-Version,X-Goog-Hash,\
    X-Goog-Generation,X-Goog-Metageneration,X-Goog-Upload-URL,X-Goog-Upload-Status,X-Goog-Upload-Command,\
    X-Goog-Upload-Protocol,X-Goog-Upload-Size-Received,X-Goog-Upload-Chunk-Granularity,X-Goog-Upload-Control-URL,\
    X-Goog-Upload-Header-Content-Length,X-Goog-Upload-Header-Content-Type,X-GUploader-UploadID
    """
}

extension StorageRequest {
  /// Runs a call, and responds with its error if it throws one.
  func respond(_ request: borrowing HTTPRequest, _ call: (borrowing HTTPRequest) throws -> Void) {
    do { try call(request) } catch { fail(Self.filesError(error)) }
  }

  /// Returns the receiver of a body. If the upload is rejected at once, the server first reads a short body to its end.
  func open(
    _ request: borrowing HTTPRequest, _ call: (borrowing HTTPRequest) throws -> any BodySink
  ) -> (any BodySink)? {
    do { return try call(request) } catch {
      return DiscardedBody.responding(request) { fail(Self.filesError(error)) }
    }
  }

  /// Converts the error of a malformed path.
  private static func filesError(_ error: any Error) -> FilesError {
    error as? FilesError ?? .invalid(Status(error, database: nil).message)
  }
}

extension HTTPRequest {
  /// Whether the query has a parameter, in lowerCamelCase or snake_case. Decodes nothing, because several routes ask for
  /// each request; clients do not encode these names.
  borrowing func hasParameter(_ name: StaticString) -> Bool {
    target.pathAndQuery.query.split(separator: UInt8(ascii: "&")).contains { part in
      var index = 0
      var isUpper = false
      for byte in part.prefix(while: { $0 != UInt8(ascii: "=") }) {
        if byte == UInt8(ascii: "_") {
          isUpper = true
          continue
        }
        guard index < name.utf8CodeUnitCount, name.utf8Start[index] == (isUpper ? byte & 0xDF : byte) else {
          return false
        }
        isUpper = false
        index += 1
      }
      return index == name.utf8CodeUnitCount
    }
  }

  /// A parameter of the query, or `nil` if it is missing or the query is malformed.
  borrowing func parameter(_ name: StaticString) -> String? {
    (try? StorageContext.parameters(of: self))?.value(name)
  }
}
