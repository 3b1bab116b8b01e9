import Foundation

/// The transport and the credentials that the values of one client share.
final class ClientConnection: Sendable {
  let transport: any HearthTransport
  let auth: Authentication
  private let credentials: Hearth.Credentials

  init(_ transport: any HearthTransport, _ credentials: Hearth.Credentials, _ auth: Authentication) {
    (self.transport, self.credentials, self.auth) = (transport, credentials, auth)
  }

  /// Sends an authorized request and returns its response. If the server rejects the token, tries once more with a
  /// new one.
  /// - Throws: ``HearthClientError`` if no exchange takes place or the status is 400 or more.
  func send(_ request: HearthRequest) async throws -> HearthResponse {
    let response = try await authorized(request) {
      try await self.transport.send($0)
    } status: {
      $0.status
    }
    guard response.status < 400 else { throw HearthClientError(status: response.status, body: response.body) }
    return response
  }

  /// Posts JSON and returns the JSON of the response.
  /// - Throws: ``HearthClientError`` if the request fails or the response is not valid JSON.
  func call(_ target: String, _ body: JSON) async throws -> JSON {
    let headers = ["Content-Type": "application/json"]
    let response = try await send(HearthRequest("POST", target, headers: headers, body: body.data))
    return try JSON(parsing: response.body)
  }

  /// Posts JSON and returns the elements of the response, for requests whose responses are streams of messages.
  /// - Throws: ``HearthClientError`` if the request fails or an error ends the stream.
  func callForElements(_ target: String, _ body: JSON) async throws -> [JSON] {
    let elements = try await call(target, body).elements
    if let last = elements.last, last["error"] != nil { throw HearthClientError(status: 500, body: last.data) }
    return elements
  }

  /// Opens a stream.
  /// - Throws: ``HearthClientError`` if no exchange takes place or the status is 400 or more.
  func open(_ request: HearthRequest) async throws -> AsyncThrowingStream<Data, any Error> {
    let stream = try await authorized(request) {
      try await self.transport.open($0)
    } status: {
      $0.status
    }
    guard stream.status >= 400 else { return stream.body }
    throw HearthClientError(status: stream.status, body: try await stream.errorBody())
  }

  /// Writes the content of a response to a new file.
  /// - Throws: ``HearthClientError`` if no exchange takes place or the status is 400 or more.
  func download(_ request: HearthRequest, to file: URL) async throws {
    let response = try await authorized(request) {
      try await self.transport.download($0, to: file)
    } status: {
      $0.status
    }
    guard response.status < 400 else { throw HearthClientError(status: response.status, body: response.body) }
  }

  private func authorized<Response>(
    _ request: HearthRequest, _ send: (HearthRequest) async throws -> Response, status: (Response) -> Int
  ) async throws -> Response {
    try Task.checkCancellation()
    var request = request
    let token = try await token(isRefused: false)
    request.headers["Authorization"] = token.map { "Bearer \($0)" }
    let response = try await send(request)
    guard status(response) == 401, token != nil, let renewed = try await self.token(isRefused: true), renewed != token
    else { return response }
    request.headers["Authorization"] = "Bearer \(renewed)"
    return try await send(request)
  }

  private func token(isRefused: Bool) async throws -> String? {
    switch credentials {
    case .signedIn: try await auth.token(forcingRefresh: isRefused)
    case .bearer(let token): token
    case .provider(let provide): try await provide(isRefused)
    }
  }
}
