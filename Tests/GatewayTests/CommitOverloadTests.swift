import Basics
import HearthServer
import Testing
import TestSupport
import WireFormat

/// Commits that a server refuses because too many wait for the disk. Clients get `RESOURCE_EXHAUSTED`, and try again.
/// `UNAVAILABLE` is for a server that stops.
@Suite struct CommitOverloadTests {
  private static let database = "projects/p/databases/(default)"
  private static let headers = [("authorization", "Bearer owner")]
  private let memory = MemoryShare(bytesMax: 1 << 20)
  private let server: TestServer

  init() throws {
    let memory = memory
    server = try TestServer { $0.commitMemory = memory }
  }

  private static func update(_ id: String) -> [UInt8] {
    Message { out in
      ProtobufWriter.message(1, to: &out) { ProtobufWriter.string(1, "\(database)/documents/c/\(id)", to: &$0) }
    }.bytes
  }

  @Test func refusedCommitsOverREST() throws {
    let body = #"{"writes":[{"update":{"name":"\#(TestServer.name)/c/a","fields":{}}}]}"#
    let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer owner")]
    let requests = [
      ("POST", ":commit", body), ("PATCH", "/c/b", "{}"), ("POST", "/c?documentId=c", "{}"), ("DELETE", "/c/d", ""),
    ]
    #expect(memory.take(memory.bytesMax))
    for (method, path, body) in requests {
      let refused = try server.call(method, path, body, headers: headers)
      #expect(refused.status == 429, "\(method) \(path): \(refused.text)")
      #expect(refused.json("error", "status") == "RESOURCE_EXHAUSTED")
      #expect(refused.message.hasPrefix("More than 1048576 bytes of commits wait for the disk. Try again"))
    }
    // A batch reports it for each write. Reads do not need the memory.
    let batch = try server.call("POST", ":batchWrite", body, headers: headers)
    #expect(batch.status == 200 && batch.json("status", 0, "code", as: Int.self) == 8, "\(batch.text)")
    #expect(try server.call("GET", "/c/a", headers: headers).status == 404)
    // A large request is refused before it is decoded.
    let large = try server.call("POST", ":commit", String(repeating: " ", count: 600_000), headers: headers)
    #expect(large.status == 429, "\(large.text)")

    memory.give(memory.bytesMax)
    for (method, path, body) in requests {
      #expect(try server.call(method, path, body, headers: headers).status == 200, "\(method) \(path)")
    }
    #expect(memory.usedBytes == 0)
  }

  @Test func refusedCommitsOverGRPC() throws {
    let grpc = try GRPCConnection(port: server.port)
    let commit = Message { out in
      ProtobufWriter.string(1, Self.database, to: &out)
      ProtobufWriter.bytes(2, Self.update("a"), to: &out)
    }.bytes
    #expect(memory.take(memory.bytesMax))
    let refused = try grpc.call("Commit", commit, headers: Self.headers)
    #expect(refused.status == 8, "\(refused.statusMessage)")
    // The client of a Write stream keeps the batch and opens another stream.
    let (token, ended) = try write("b", grpc)
    #expect(token != nil && ended?.status == 8, "\(String(describing: ended))")

    memory.give(memory.bytesMax)
    #expect(try grpc.call("Commit", commit, headers: Self.headers).status == 0)
    #expect(try write("b", grpc).ended == nil)
    #expect(memory.usedBytes == 0)
  }

  /// Opens a Write stream and sends a batch. Returns the token of the opened stream, and the response if the stream ends.
  private func write(_ id: String, _ grpc: GRPCConnection) throws -> (token: String?, ended: GRPCConnection.Response?) {
    let stream = grpc.open("Write", headers: Self.headers)
    let opening = Message { ProtobufWriter.string(1, Self.database, to: &$0) }.bytes
    grpc.send(GRPCConnection.framed(opening), on: stream)
    let token = try grpc.next(on: stream).flatMap { Message.texts(2, of: $0).last }
    let batch = Message { out in
      ProtobufWriter.bytes(3, Self.update(id), to: &out)
      ProtobufWriter.string(4, token ?? "", to: &out)
    }.bytes
    grpc.send(GRPCConnection.framed(batch), on: stream)
    guard try grpc.next(on: stream) == nil else {
      grpc.cancel(stream)
      return (token, nil)
    }
    return (token, try grpc.end(of: stream))
  }
}
