import Foundation

/// What the values of a client share: the way to the server, and who asks.
final class ClientConnection: Sendable {
  let transport: any HearthTransport
  let auth: Authentication
  private let credentials: Hearth.Credentials

  init(_ transport: any HearthTransport, _ credentials: Hearth.Credentials, _ auth: Authentication) {
    (self.transport, self.credentials, self.auth) = (transport, credentials, auth)
  }

  /// Sends a request of whoever asks and returns the answer; one more time with a new token where the server refuses it.
  /// - Throws: ``HearthClientError`` for every status from 400.
  func send(_ request: HearthRequest) async throws -> HearthResponse {
    let response = try await authorized(request) { try await self.transport.send($0) } status: { $0.status }
    guard response.status < 400 else { throw HearthClientError(status: response.status, body: response.body) }
    return response
  }

  /// Posts JSON and returns the answer's.
  func call(_ target: String, _ body: JSON) async throws -> JSON {
    let headers = ["Content-Type": "application/json"]
    let response = try await send(HearthRequest("POST", target, headers: headers, body: body.data))
    return try JSON(parsing: response.body)
  }

  /// Posts JSON and returns the elements of the answer: calls that could answer with a stream answer with an array.
  /// - Throws: also the error that ends such an array.
  func callForElements(_ target: String, _ body: JSON) async throws -> [JSON] {
    let elements = try await call(target, body).elements
    if let last = elements.last, last["error"] != nil { throw HearthClientError(status: 500, body: last.data) }
    return elements
  }

  /// Opens a stream.
  /// - Throws: ``HearthClientError`` for every status from 400.
  func open(_ request: HearthRequest) async throws -> AsyncThrowingStream<Data, any Error> {
    let stream = try await authorized(request) { try await self.transport.open($0) } status: { $0.status }
    guard stream.status >= 400 else { return stream.body }
    throw HearthClientError(status: stream.status, body: try await stream.errorBody())
  }

  /// Writes the content of an answer into a new file.
  /// - Throws: ``HearthClientError`` for every status from 400.
  func download(_ request: HearthRequest, to file: URL) async throws {
    let response = try await authorized(request) {
      try await self.transport.download($0, to: file)
    } status: {
      $0.status
    }
    guard response.status < 400 else { throw HearthClientError(status: response.status, body: response.body) }
  }

  private func authorized<Answer>(
    _ request: HearthRequest, _ send: (HearthRequest) async throws -> Answer, status: (Answer) -> Int
  ) async throws -> Answer {
    try Task.checkCancellation()
    var request = request
    let token = try await token(isRefused: false)
    request.headers["Authorization"] = token.map { "Bearer \($0)" }
    let answer = try await send(request)
    guard status(answer) == 401, token != nil, let renewed = try await self.token(isRefused: true), renewed != token
    else { return answer }
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
