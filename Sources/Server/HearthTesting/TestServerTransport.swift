import Foundation
public import HearthClient
public import HearthServer

/// Has a client talk to a server of the same process: no socket lies between them.
public struct TestServerTransport: HearthTransport {
  private let server: TestServer
  private let caller: TestServer.Caller

  /// Joins a client to a server, as a caller. A client that signs somebody in is that person from then on.
  public init(_ server: TestServer, as caller: TestServer.Caller = .nobody) {
    self.server = server
    self.caller = caller
  }

  /// Sends a request and returns the whole answer.
  public func send(_ request: HearthRequest) async throws -> HearthResponse {
    let reply = try await server.respond(to: TestServer.Request(request), as: caller)
    let bytes = try await Self.mapped { try await reply.bytes() }
    return HearthResponse(status: reply.status, headers: Self.headers(reply), body: Data(bytes))
  }

  /// Sends a request and returns the answer as soon as its head is there. The server makes more of the body when more
  /// of it is asked for.
  public func open(_ request: HearthRequest) async throws -> HearthStream {
    let reply = try await server.respond(to: TestServer.Request(request), as: caller)
    let body = reply.body
    return HearthStream(
      status: reply.status, headers: Self.headers(reply),
      body: AsyncThrowingStream {
        // Where reading stands belongs to the body.
        var pieces = body.makeAsyncIterator()
        return try await Self.mapped { try await pieces.next() }.map { Data($0) }
      })
  }

  private static func headers(_ reply: TestServer.Response) -> [String: String] {
    Dictionary(reply.headers.map { ($0.name.lowercased(), $0.value) }) { first, second in "\(first), \(second)" }
  }

  /// A reply that was cut short is to a client what a broken connection is.
  private static func mapped<R>(_ body: () async throws -> R) async throws -> R {
    do { return try await body() } catch let error as TestServer.CutShort {
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
  /// A client of this server, as a caller; one that signs somebody in is that person from then on.
  ///
  ///     let db = try base.fork()
  ///     try await db.client(as: .user("ann")).document("users/ann").set(["name": "Ann"])
  public func client(as caller: Caller = .nobody, database: String = "(default)") -> Hearth {
    Hearth(transport: TestServerTransport(self, as: caller), project: project, database: database)
  }
}
