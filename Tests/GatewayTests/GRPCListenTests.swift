import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore

/// Listen over a connection: the events of targets, with many and slow clients.
@Suite struct GRPCListenTests {
  private static let database = GRPCStreamTests.database
  private static let root = GRPCStreamTests.root

  /// One message of a stream, in short form.
  enum Event: Equatable {
    case added([Int64]), removed([Int64], Int64), reset([Int64]), current([Int64]), snapshot
    case changed(String, [Int64], left: [Int64]), deleted(String, [Int64]), left(String, [Int64])
    case other([UInt8])

    init(_ message: [UInt8]) {
      if let change = Message.fields(2, of: message).first {
        let ids = Event.numbers(2, of: change)
        switch Message.number(1, of: change) {
        case 1: self = .added(ids)
        case 2: self = .removed(ids, Message.fields(3, of: change).first.flatMap { Message.number(1, of: $0) } ?? 0)
        case 3: self = .current(ids)
        case 4: self = .reset(ids)
        case nil where ids.isEmpty: self = .snapshot
        default: self = .other(message)
        }
      } else if let change = Message.fields(3, of: message).first {
        let name = Message.texts(1, of: Message.fields(1, of: change)[0])[0]
        self = .changed(Event.short(name), Event.numbers(5, of: change), left: Event.numbers(6, of: change))
      } else if let change = Message.fields(4, of: message).first {
        self = .deleted(Event.short(Message.texts(1, of: change)[0]), Event.numbers(6, of: change))
      } else if let change = Message.fields(6, of: message).first {
        self = .left(Event.short(Message.texts(1, of: change)[0]), Event.numbers(2, of: change))
      } else {
        self = .other(message)
      }
    }

    private static func short(_ name: String) -> String { String(name.dropFirst(GRPCListenTests.root.count + 1)) }

    /// The elements of a packed list.
    private static func numbers(_ number: Int, of message: [UInt8]) -> [Int64] {
      Message.fields(number, of: message).flatMap { list in
        list.withUnsafeBytes { bytes in
          var reader = ProtobufReader(bytes)
          var numbers: [Int64] = []
          while !reader.isAtEnd, let next = try? reader.varint() { numbers.append(Int64(bitPattern: next)) }
          return numbers
        }
      }
    }
  }

  /// A framed ListenRequest that adds a target.
  private static func add(_ id: Int64, token: [UInt8] = [], _ members: (inout [UInt8]) -> Void) -> [UInt8] {
    GRPCConnection.framed(
      Message { out in
        ProtobufWriter.string(1, database, to: &out)
        ProtobufWriter.message(2, to: &out) { target in
          members(&target)
          if !token.isEmpty { ProtobufWriter.bytes(4, token, to: &target) }
          ProtobufWriter.int64(5, id, to: &target)
        }
      }.bytes)
  }

  static func query(_ id: Int64, _ collection: String, token: [UInt8] = []) -> [UInt8] {
    add(id, token: token) { target in
      ProtobufWriter.message(2, to: &target) { query in
        ProtobufWriter.string(1, root, to: &query)
        ProtobufWriter.message(2, to: &query) { query in
          ProtobufWriter.message(2, to: &query) { ProtobufWriter.string(2, collection, to: &$0) }
        }
      }
    }
  }

  static func documents(_ id: Int64, token: [UInt8] = [], _ paths: String...) -> [UInt8] {
    add(id, token: token) { target in
      ProtobufWriter.message(3, to: &target) { documents in
        for path in paths { ProtobufWriter.string(2, root + "/" + path, to: &documents) }
      }
    }
  }

  static func remove(_ id: Int64) -> [UInt8] {
    GRPCConnection.framed(Message { ProtobufWriter.int64(3, id, to: &$0) }.bytes)
  }

  /// The next events up to and including a snapshot. Skips snapshots without events before them.
  @discardableResult
  static func events(_ grpc: GRPCConnection, _ stream: UInt32) throws -> [Event] {
    var events: [Event] = []
    while true {
      let message = try #require(try grpc.next(on: stream), "the stream ended")
      let event = Event(message)
      if event == .snapshot, events.isEmpty { continue }
      events.append(event)
      if event == .snapshot { return events }
    }
  }

  @Test func listenerReceivesChangesOfAQuery() throws {
    let server = try TestServer()
    for number in 0..<3 { _ = try server.call("PATCH", "/c/d\(number)", "{}") }
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen")
    grpc.send(Self.query(2, "c"), on: stream)
    #expect(
      try Self.events(grpc, stream) == [
        .added([2]), .changed("c/d0", [2], left: []), .changed("c/d1", [2], left: []), .changed("c/d2", [2], left: []),
        .current([2]), .snapshot,
      ])
    _ = try server.call("PATCH", "/c/d1", #"{"fields":{"n":{"integerValue":"1"}}}"#)
    #expect(try Self.events(grpc, stream) == [.changed("c/d1", [2], left: []), .snapshot])
    _ = try server.call("DELETE", "/c/d0")
    #expect(try Self.events(grpc, stream) == [.deleted("c/d0", [2]), .snapshot])
    // Snapshots separate commits for all targets: one commit is never split.
    grpc.send(Self.documents(1, "c/d1", "c/none"), on: stream)
    let added = try Self.events(grpc, stream)
    #expect(added.first == .added([1]) && added.contains(.changed("c/d1", [1], left: [])))
    #expect(added.contains(.deleted("c/none", [1])) && Array(added.suffix(2)) == [.current([1]), .snapshot])
    _ = try server.call(
      "POST", "/v1/\(Self.root):commit",
      #"{"writes":[{"delete":"\#(Self.root)/c/d1"},{"update":{"name":"\#(Self.root)/c/none","fields":{}}}]}"#)
    var seen: Set<String> = []
    for event in try Self.events(grpc, stream).dropLast() {
      switch event {
      case .deleted("c/d1", let ids): for id in ids { seen.insert("deleted \(id)") }
      case .changed("c/none", let ids, _): for id in ids { seen.insert("made \(id)") }
      default: Issue.record("\(event)")
      }
    }
    #expect(seen == ["deleted 1", "deleted 2", "made 1", "made 2"])
    grpc.send(Self.remove(2) + Self.remove(77), on: stream)
    while true {
      let event = Event(try #require(try grpc.next(on: stream)))
      if event == .snapshot { continue }
      #expect(event == .removed([2], 0))
      break
    }
  }

  /// A client that closes its side at once receives the current state and the end.
  @Test func clientThatClosesItsSideReceivesTheState() throws {
    let server = try TestServer()
    _ = try server.call("PATCH", "/c/d", "{}")
    let grpc = try GRPCConnection(port: server.port)
    for _ in 0..<20 {
      let stream = grpc.open("Listen")
      grpc.send(Self.query(2, "c"), on: stream, end: true)
      let end = try grpc.end(of: stream)
      #expect(end.status == 0)
      #expect(
        end.messages.map { Event($0) } == [.added([2]), .changed("c/d", [2], left: []), .current([2]), .snapshot])
    }
  }

  @Test func resumeTokensContinueAListen() throws {
    let server = try TestServer()
    for number in 0..<3 { _ = try server.call("PATCH", "/c/d\(number)", "{}") }
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen")
    grpc.send(Self.query(2, "c"), on: stream, end: true)
    let first = try grpc.end(of: stream)
    let token = Message.fields(4, of: Message.fields(2, of: try #require(first.messages.last))[0])[0]
    _ = try server.call("DELETE", "/c/d1")
    _ = try server.call("PATCH", "/c/d3", "{}")
    let again = grpc.open("Listen")
    grpc.send(Self.query(4, "c", token: token), on: again, end: true)
    let events = try grpc.end(of: again).messages.map { Event($0) }
    #expect(events.first == .added([4]) && Array(events.suffix(2)) == [.current([4]), .snapshot])
    #expect(events.dropFirst().dropLast(2).contains(.changed("c/d3", [4], left: [])) && events.count == 5)
    let foreign = grpc.open("Listen")
    grpc.send(Self.query(6, "c", token: [1, 2, 3]), on: foreign, end: true)
    let all = try grpc.end(of: foreign).messages.map { Event($0) }
    #expect(all.contains(.reset([6])) && all.count { if case .changed = $0 { true } else { false } } == 3)
  }

  /// Denying one target ends only that target.
  @Test func deniedTargetEndsAlone() throws {
    let (server, directory) = try RulesTests.server()
    defer { withExtendedLifetime(directory) {} }
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen", headers: RulesTests.callers[0].headers)
    grpc.send(Self.query(2, "secrets") + Self.query(4, "public"), on: stream, end: true)
    let events = try grpc.end(of: stream).messages.map { Event($0) }
    #expect(events.contains(.removed([2], 7)) && events.contains(.current([4])), "\(events)")
    #expect(!events.contains { if case .changed = $0 { true } else { false } })
  }

  @Test func duplicateTargetEndsTheStream() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen")
    grpc.send(Self.query(2, "c") + Self.query(2, "c"), on: stream)
    let end = try grpc.end(of: stream)
    #expect(end.status == 3 && end.statusMessage == "Target id already in use: 2")
  }

  /// A client with a small window receives everything and does not delay other clients.
  @Test func slowClientReceivesEverything() throws {
    let server = try TestServer()
    let text = String(repeating: "x", count: 2000)
    for batch in 0..<4 {
      let writes = (0..<250).map {
        #"{"update":{"name":"\#(Self.root)/c/d\#(1000 + batch * 250 + $0)","fields":{"s":{"stringValue":"\#(text)"}}}}"#
      }
      #expect(
        try server.call("POST", "/v1/\(Self.root):commit", #"{"writes":[\#(writes.joined(separator: ","))]}"#).status
          == 200)
    }
    let grpc = try GRPCConnection(port: server.port, windowBytes: 10_000)
    let slow = grpc.open("Listen")
    grpc.send(Self.query(2, "c"), on: slow, end: true)
    let other = try GRPCConnection(port: server.port)
    let quick = other.open("Listen")
    other.send(Self.query(2, "c"), on: quick, end: true)
    #expect(try other.end(of: quick).messages.count == 1003)
    // The changes exceed the stream's backlog while the client reads nothing.
    for round in 0..<20 { _ = try server.call("PATCH", "/c/e\(round)", "{}") }
    var seen: Set<String> = []
    var count = 0
    while let message = try grpc.next(on: slow) {
      if case .changed(let name, _, _) = Event(message) { seen.insert(name) }
      count += message.count + 5
      if count > 5000 {
        grpc.widen(slow, by: count)
        count = 0
      }
    }
    #expect(try grpc.end(of: slow).status == 0)
    #expect(seen.count >= 1000)
  }

  @Test func manyListenersReceiveOneWrite() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let streams = (0..<100).map { _ in grpc.open("Listen") }
    for stream in streams {
      grpc.send(Self.query(2, "c"), on: stream)
      #expect(try Self.events(grpc, stream) == [.added([2]), .current([2]), .snapshot])
    }
    for stream in streams.prefix(50) { grpc.cancel(stream) }
    _ = try server.call("PATCH", "/c/d", "{}")
    for stream in streams.suffix(50) {
      #expect(try Self.events(grpc, stream) == [.changed("c/d", [2], left: []), .snapshot])
    }
  }
}
