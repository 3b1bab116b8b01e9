import Foundation

/// A server that notifies listeners of a collection about changes.
protocol ListeningServer {
  var server: any PeerServer { get }
  /// A text that appears exactly once in the notification of a change.
  var marker: String { get }
  /// Stores the documents that listeners need.
  func prepare() throws
  /// Opens connections that listen to the collection. Returns when all of them listen.
  func open(_ count: Int, _ clients: FeedClients) throws
  /// Sends a change of one document of the collection. The response arrives later and must have status 200.
  func beginChange(_ number: Int) throws -> LoadClient.Pending?
}

/// Hearth's server-sent events.
struct HearthListening: ListeningServer {
  let hearth: HearthPeer
  var server: any PeerServer { hearth }
  let marker = "\"documentChange\""

  init(_ hearth: HearthPeer) { self.hearth = hearth }

  func prepare() throws { _ = try hearth.storeSample() }

  /// Returns the request that listens to a document or a collection.
  func request(_ path: String) -> String {
    "GET \(FirestoreFilling.documents)/\(path):listen HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
  }

  func open(_ count: Int, _ clients: FeedClients) throws {
    try clients.open(count, port: hearth.port) { _ in request("tasks") }
    // Every listener first receives the one document of the collection.
    try clients.read(withinSeconds: 120) { clients.counts.allSatisfy { $0 > 0 } }
  }

  func beginChange(_ number: Int) throws -> LoadClient.Pending? {
    try FirestoreWriting.beginChange(number, port: hearth.port)
  }
}

/// PocketBase's realtime service: a connection gets an ID, and a separate request sets its subscriptions.
struct PocketBaseListening: ListeningServer {
  private let pocketBase: PocketBasePeer
  private let record: String
  var server: any PeerServer { pocketBase }
  let marker = "\"action\":\"update\""

  init(_ pocketBase: PocketBasePeer) throws {
    self.pocketBase = pocketBase
    record = try pocketBase.storeSample()
  }

  func prepare() {}

  func open(_ count: Int, _ clients: FeedClients) throws {
    let names = ClientNames()
    clients.onBytes = { names.read($0, $1) }
    defer { clients.onBytes = nil }
    try clients.open(count, port: pocketBase.port) { _ in
      "GET /api/realtime HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    }
    try clients.read(withinSeconds: 120) { names.found.count == count }
    for name in names.found.values {
      let reply = try LoadClient.send(
        "POST", port: pocketBase.port, "/api/realtime",
        body: #"{"clientId": "\#(name)", "subscriptions": ["tasks/*"]}"#)
      guard reply.status == 204 else { throw BenchmarkError("pocketbase refused a subscription: \(reply.body)") }
    }
  }

  func beginChange(_ number: Int) throws -> LoadClient.Pending? {
    try LoadClient.begin("PATCH", port: pocketBase.port, record, body: #"{"count": \#(number)}"#)
  }

  /// The IDs of the connections.
  private final class ClientNames {
    private(set) var found: [Int: String] = [:]
    private var texts: [Int: String] = [:]

    func read(_ number: Int, _ bytes: ArraySlice<UInt8>) {
      guard found[number] == nil else { return }
      let text = (texts.removeValue(forKey: number) ?? "") + String(decoding: bytes, as: UTF8.self)
      guard let start = text.range(of: #""clientId":""#), let end = text[start.upperBound...].firstIndex(of: "\"")
      else {
        texts[number] = text
        return
      }
      found[number] = String(text[start.upperBound..<end])
    }
  }
}

/// The emulator's channel for browsers: one request opens it, and a second one, which stays open, receives the
/// events.
struct EmulatorListening: ListeningServer {
  private let emulator: EmulatorPeer
  var server: any PeerServer { emulator }
  let marker = "\"documentChange\""

  init(_ emulator: EmulatorPeer) { self.emulator = emulator }

  func prepare() throws { _ = try emulator.storeSample() }

  func open(_ count: Int, _ clients: FeedClients) throws {
    let channel = "/google.firestore.v1.Firestore/Listen/channel?VER=8&database=projects/bench/databases/(default)"
    let target = #"""
      {"database":"projects/bench/databases/(default)","addTarget":{"targetId":2,"query":{\#
      "parent":"projects/bench/databases/(default)/documents","structuredQuery":{"from":[{"collectionId":"tasks"}]}}}}
      """#
    let allowed = CharacterSet.alphanumerics
    let data = target.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
    try clients.open(count, port: emulator.port) { _ in
      let reply = try LoadClient.send(
        "POST", port: emulator.port, channel + "&RID=1&CVER=22&X-HTTP-Session-Id=gsessionid&t=1",
        body: "count=1&ofs=0&req0___data__=\(data)", headers: ["Content-Type": "application/x-www-form-urlencoded"])
      guard reply.status == 200, let start = reply.body.range(of: #"["c",""#),
        let end = reply.body[start.upperBound...].firstIndex(of: "\"")
      else { throw BenchmarkError("the emulator opened no channel: \(reply.status) \(reply.body)") }
      let session = reply.body[start.upperBound..<end]
      let field = reply.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("x-http-session-id:") }
      let name =
        field.map { "&gsessionid=\($0.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces))" } ?? ""
      return
        "GET \(channel)&RID=rpc&SID=\(session)\(name)&AID=0&CI=0&TYPE=xmlhttp&t=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    }
    try clients.read(withinSeconds: 120) { clients.counts.allSatisfy { $0 > 0 } }
  }

  func beginChange(_ number: Int) throws -> LoadClient.Pending? {
    try FirestoreWriting.beginChange(number, port: emulator.port)
  }
}

/// Changes the sample on a server with Firestore's REST API.
enum FirestoreWriting {
  static func beginChange(_ number: Int, port: Int) throws -> LoadClient.Pending? {
    let body = Sample.firestoreJSON.replacingOccurrences(of: #""42""#, with: "\"\(number)\"")
    return try LoadClient.begin("PATCH", port: port, "\(FirestoreFilling.documents)/tasks/sample", body: body)
  }
}
