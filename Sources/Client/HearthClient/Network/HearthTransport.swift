public import Foundation

/// How a ``Hearth`` reaches a server: over the network by default, or within one process in tests.
///
/// An answer with an error status is an answer; only an exchange that did not happen throws, a ``HearthClientError`` of
/// code ``HearthClientError/Code/network``. Cancelling the task that calls ends the exchange.
public protocol HearthTransport: Sendable {
  /// Sends a request and returns the whole answer.
  func send(_ request: HearthRequest) async throws -> HearthResponse

  /// Sends a request and returns the answer as soon as its head is there; the body follows piece by piece, without end
  /// where the server keeps it open. Whoever lets go of the body ends the exchange.
  func open(_ request: HearthRequest) async throws -> HearthStream

  /// Sends a request and writes the content of the answer into a file that is not there yet, as fast as the disk takes
  /// it. The answer's body is empty then. With an error status there is no file, and the body is the content.
  ///
  /// By default it reads what ``open(_:)`` gives.
  func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse
}

extension HearthTransport {
  /// Sends a request and writes the content of the answer into a file, piece by piece.
  public func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse {
    let stream = try await open(request)
    var response = HearthResponse(status: stream.status, headers: stream.headers)
    if stream.status >= 400 {
      response.body = try await stream.errorBody()
      return response
    }
    try Data().write(to: file, options: .withoutOverwriting)
    let handle = try FileHandle(forWritingTo: file)
    defer { try? handle.close() }
    for try await piece in stream.body { try handle.write(contentsOf: piece) }
    return response
  }
}

extension HearthStream {
  /// What an error says is short; no more than this is read of it.
  static let errorBytesMax = 1 << 20

  /// The content of an answer with an error status.
  func errorBody() async throws -> Data {
    var content = Data()
    for try await piece in body {
      content.append(piece)
      if content.count > Self.errorBytesMax { break }
    }
    return content
  }
}

/// A request to a server, below its address.
public struct HearthRequest: Sendable {
  /// The method, such as `POST`.
  public var method: String
  /// Path and query, percent-encoded, such as `/v1/projects/demo/databases/(default)/documents:commit`.
  public var target: String
  /// Names and values of the header fields.
  public var headers: [String: String]
  /// The content, `nil` for none.
  public var body: Data?

  /// Makes a request.
  public init(_ method: String, _ target: String, headers: [String: String] = [:], body: Data? = nil) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

/// A server's whole answer.
public struct HearthResponse: Sendable {
  /// The HTTP status.
  public var status: Int
  /// The header fields, by their names in lower case.
  public var headers: [String: String]
  /// The content.
  public var body: Data

  /// Makes an answer.
  public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// A server's answer whose content arrives piece by piece.
public struct HearthStream: Sendable {
  /// The HTTP status.
  public var status: Int
  /// The header fields, by their names in lower case.
  public var headers: [String: String]
  /// The pieces of the content, cut anywhere.
  public var body: AsyncThrowingStream<Data, any Error>

  /// Makes an answer.
  public init(status: Int, headers: [String: String] = [:], body: AsyncThrowingStream<Data, any Error>) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
