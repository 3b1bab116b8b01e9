import Foundation
public import HearthClient
public import HearthServer

/// A transport that connects a client to a test server in the same process, without a socket.
public struct TestServerTransport: HearthTransport {
  private let server: TestServer
  private let caller: TestServer.Caller

  /// Creates a transport for a caller. After the client signs a user in, requests are made as that user.
  public init(_ server: TestServer, as caller: TestServer.Caller = .nobody) {
    self.server = server
    self.caller = caller
  }

  /// Sends a request and returns the whole response.
  /// - Throws: `HearthClientError` if the response ends early, or `CancellationError`.
  public func send(_ request: HearthRequest) async throws -> HearthResponse {
    let response = try await server.respond(to: TestServer.Request(request), as: caller)
    let bytes = try await Self.mapped { try await response.bytes() }
    return HearthResponse(status: response.status, headers: Self.headers(response), body: Data(bytes))
  }

  /// Sends a request and returns the response as soon as its head is available. The server produces the body as it
  /// is read.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func open(_ request: HearthRequest) async throws -> HearthStream {
    let response = try await server.respond(to: TestServer.Request(request), as: caller)
    let body = response.body
    return HearthStream(
      status: response.status, headers: Self.headers(response),
      body: AsyncThrowingStream {
        // All iterators of the body share one position.
        var pieces = body.makeAsyncIterator()
        return try await Self.mapped { try await pieces.next() }.map { Data($0) }
      })
  }

  private static func headers(_ response: TestServer.Response) -> [String: String] {
    Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, second in "\(first), \(second)" }
  }

  /// Converts the error for a response that ended early to the client's error for a broken connection.
  private static func mapped<R>(_ body: () async throws -> R) async throws -> R {
    do { return try await body() } catch let error as TestServer.ResponseInterrupted {
      throw HearthClientError(.network, error.description)
    }
  }
}

extension TestServer.Request {
  init(_ request: HearthRequest) {
    self.init(
      request.method, request.target, headers: request.headers.map { (name: $0.key, value: $0.value) },
      body: request.body.map { Array($0) } ?? [])
  }
}

extension TestServer {
  /// Returns a client of this server for a caller. After the client signs a user in, requests are made as that
  /// user.
  ///
  ///     let db = try base.fork()
  ///     try await db.client(as: .user("ann")).document("users/ann").set(["name": "Ann"])
  public func client(as caller: Caller = .nobody, database: String = "(default)") -> Hearth {
    Hearth(transport: TestServerTransport(self, as: caller), project: project, database: database)
  }
}
