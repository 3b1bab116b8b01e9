public import Foundation

/// Carries the requests of a ``Hearth`` to a server: over the network by default, or within one process in tests.
///
/// A response with an error status is returned, not thrown. If no exchange takes place, methods throw
/// ``HearthClientError`` with the code ``HearthClientError/Code/network``. Cancelling the task ends the exchange.
public protocol HearthTransport: Sendable {
  /// Sends a request and returns the complete response.
  /// - Throws: ``HearthClientError`` if no exchange takes place.
  func send(_ request: HearthRequest) async throws -> HearthResponse

  /// Sends a request and returns the response once its headers have arrived. The body follows in pieces, and does
  /// not end while the server keeps the stream open. Releasing the body ends the exchange.
  /// - Throws: ``HearthClientError`` if no exchange takes place.
  func open(_ request: HearthRequest) async throws -> HearthStream

  /// Sends a request and writes the content of the response to a new file, no faster than the disk. The response
  /// then has an empty body. With an error status, no file is created and the body contains the content.
  ///
  /// The default implementation reads the stream of ``open(_:)``.
  /// - Throws: ``HearthClientError`` if no exchange takes place, or an error of Foundation if the file cannot be
  ///   written.
  func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse
}

extension HearthTransport {
  /// Sends a request and writes the content of the response to a file, piece by piece.
  /// - Throws: ``HearthClientError`` if no exchange takes place, or an error of Foundation if the file cannot be
  ///   written.
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
  /// The maximum size of an error body, in bytes. The rest is not read.
  static let errorBytesMax = 1 << 20

  /// Returns the body of a response with an error status.
  func errorBody() async throws -> Data {
    var content = Data()
    for try await piece in body {
      content.append(piece)
      if content.count > Self.errorBytesMax { break }
    }
    return content
  }
}

/// A request to a server, without the server's address.
public struct HearthRequest: Sendable {
  /// The method, such as `POST`.
  public var method: String
  /// The path and query, percent-encoded, such as `/v1/projects/demo/databases/(default)/documents:commit`.
  public var target: String
  /// The names and values of the header fields.
  public var headers: [String: String]
  /// The body, or `nil` for none.
  public var body: Data?

  /// A request. `target` is percent-encoded.
  public init(_ method: String, _ target: String, headers: [String: String] = [:], body: Data? = nil) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }
}

/// A complete response of a server.
public struct HearthResponse: Sendable {
  /// The HTTP status.
  public var status: Int
  /// The header fields, with names in lower case.
  public var headers: [String: String]
  public var body: Data

  /// A response. Names of headers are in lower case.
  public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// A response whose body arrives in pieces.
public struct HearthStream: Sendable {
  /// The HTTP status.
  public var status: Int
  /// The header fields, with names in lower case.
  public var headers: [String: String]
  /// The pieces of the body, split at any byte.
  public var body: AsyncThrowingStream<Data, any Error>

  /// A response. Names of headers are in lower case.
  public init(status: Int, headers: [String: String] = [:], body: AsyncThrowingStream<Data, any Error>) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}
