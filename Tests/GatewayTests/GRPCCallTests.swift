import Callers
import DatabaseService
import DocumentModel
import Foundation
import Synchronization
import Testing
import TestSupport
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore
@testable import Transport

/// Deadlines and cancellation over a connection, for work that would never end by itself.
@Suite struct GRPCCallTests {
  /// Produces messages forever, or works forever and produces none. Reports when it is released.
  private final class Endless: ResponseProducer {
    let isSilent: Bool
    let onEnd: @Sendable () -> Void

    init(isSilent: Bool, onEnd: @escaping @Sendable () -> Void) {
      self.isSilent = isSilent
      self.onEnd = onEnd
    }

    deinit { onEnd() }

    func produce(_ emit: (RunQueryResponse) throws -> Bool) throws -> Bool {
      while !isSilent, try emit(RunQueryResponse(readTime: Timestamp(uncheckedMicroseconds: 1))) {}
      return false
    }
  }

  /// Responds by the path of the call: `/messages`, `/silence` and `/slices` continue until they are stopped;
  /// `/never` waits for an event that does not occur.
  private final class Handler: RequestHandler {
    /// The number of calls whose work has ended, for any reason.
    let over = Observed(0)
    /// The number of calls that have arrived.
    let arrived = Observed(0)
    private let forgotten = Mutex<[LoopBound<GRPCCall>]>([])

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      let call = GRPCCall(exchange, GRPCRequestHead(request), .user(nil))
      let over = over
      switch String(decoding: request.target, as: UTF8.self) {
      case "/messages", "/silence":
        let producer = Endless(isSilent: request.target.elementsEqual("/silence".utf8)) { over.update { $0 += 1 } }
        guard let database = DatabaseID(project: "p") else { return }
        call.send(producer, in: database)
      case "/slices":
        let work = Endless(isSilent: true) { over.update { $0 += 1 } }
        CooperativeTask.run(exchange) { withExtendedLifetime(work) { call.hasResponded } }
      case "/never":
        exchange.onClose { over.update { $0 += 1 } }
        forgotten.withLock { $0.append(call.bound) }
      default: call.send(EmptyMessage())
      }
      call.watchDeadline()
      arrived.update { $0 += 1 }
    }
  }

  private final class Server {
    let handler = Handler()
    private let clock: ManualClock?
    let http: HTTPServer
    let port: UInt16

    /// - Parameter clock: the clock of the loops; the system's if `nil`.
    init(clock: ManualClock? = nil) throws {
      self.clock = clock
      var configuration = TransportConfiguration()
      configuration.port = 0
      configuration.loops = 1
      configuration.clock = clock
      http = try HTTPServer(configuration: configuration, handler: handler)
      port = try #require(UInt16(exactly: try http.start().port))
    }

    deinit { http.stop(graceSeconds: 0) }

    /// Waits until the work of `count` calls has ended.
    func isOver(_ count: Int = 1) -> Bool { handler.over.wait { $0 == count } }

    func advance(milliseconds: Int) {
      clock?.advance(milliseconds: milliseconds)
      http.sweepDeadlines()
    }
  }

  @Test(arguments: ["/messages", "/silence", "/slices"]) func cancelledWorkStops(path: String) throws {
    let server = try Server()
    let grpc = try GRPCConnection(port: server.port)
    for round in 1...3 {
      let stream = grpc.begin(path: path, body: GRPCConnection.framed([]), headers: [("grpc-timeout", "1H")])
      if path == "/messages" { _ = try grpc.next(on: stream) }
      grpc.cancel(stream)
      #expect(server.isOver(round), "the work continues")
    }
    // The connection is still usable.
    #expect(try grpc.call(path: "/", body: GRPCConnection.framed([])).status == 0)
  }

  @Test(arguments: ["/messages", "/silence", "/slices"]) func workStopsWhenTheClientDisconnects(path: String) throws {
    let server = try Server()
    do {
      let grpc = try GRPCConnection(port: server.port)
      let stream = grpc.begin(path: path, body: GRPCConnection.framed([]))
      if path == "/messages" { _ = try grpc.next(on: stream) }
    }
    #expect(server.isOver(), "the work continues")
  }

  @Test(arguments: ["/messages", "/silence", "/slices", "/never"]) func deadlinesEndCalls(path: String) throws {
    let server = try Server(clock: ManualClock())
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.begin(path: path, body: GRPCConnection.framed([]), headers: [("grpc-timeout", "20m")])
    #expect(server.handler.arrived.wait { $0 == 1 })
    if path == "/messages" { _ = try grpc.next(on: stream) }
    server.advance(milliseconds: 20)
    let reply = try grpc.end(of: stream)
    #expect(reply.status == 4 && reply.statusMessage == "The deadline of 20 ms passed.")
    #expect(reply.resetCode == nil)
    #expect(reply.frames.isEmpty == (path != "/messages"))
    if path != "/never" { #expect(server.isOver(), "the work continues") }
    #expect(try grpc.call(path: "/", body: GRPCConnection.framed([])).status == 0)
  }
}
