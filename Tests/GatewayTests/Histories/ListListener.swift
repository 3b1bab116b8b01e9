import DocumentModel
import TestSupport
import WireFormat

/// One event of a listener of all lists.
enum ListEvent {
  case changed(key: String, ListState)
  case current
  /// All changes up to a time have been sent.
  case snapshot(Timestamp, token: [UInt8])
  /// The server resends everything.
  case reset
  case other
  case unexpected(String)
}

/// A connection that delivers the events of a listener.
protocol ListEvents: AnyObject {
  /// Waits for the next event.
  /// - Throws: any error if the connection ends.
  func next() throws -> ListEvent
}

/// A listener of all lists. It must see each version of a list once and in order, and each snapshot is a state of the
/// whole database, which it records as a transaction that only reads.
struct ListListener {
  /// The state that a client keeps, to resume from it.
  struct State: Sendable {
    var lists: [String: ListState] = [:]
    var time: Timestamp?
    var token: [UInt8] = []
  }

  private(set) var state: State
  private var changes: [String: ListState] = [:]
  private var isCurrent: Bool
  private var isReset = false

  /// Continues from a state.
  init(_ state: State = State()) {
    self.state = state
    isCurrent = false
  }

  /// Follows events until the list ``AppendWorkload/lastKey`` has an element.
  /// - Throws: the error of the connection.
  mutating func follow(_ events: any ListEvents, _ recorder: inout AppendRecorder) throws {
    while state.lists[AppendWorkload.lastKey] == nil {
      switch try events.next() {
      case .changed(let key, let list): change(key, list, &recorder)
      case .current: isCurrent = true
      case .snapshot(let time, let token): if isCurrent { snapshot(time, token, &recorder) }
      case .reset:
        changes = [:]
        isReset = true
      case .other: break
      case .unexpected(let text): recorder.problems.append("\(recorder.client): \(text)")
      }
    }
  }

  private mutating func change(_ key: String, _ list: ListState, _ recorder: inout AppendRecorder) {
    let known = changes[key] ?? (isReset ? nil : state.lists[key])
    if let known = known?.updated, let updated = list.updated, updated <= known {
      recorder.problems.append("\(recorder.client): \(key) of \(updated) after that of \(known)")
    }
    changes[key] = list
  }

  private mutating func snapshot(_ time: Timestamp, _ token: [UInt8], _ recorder: inout AppendRecorder) {
    if let last = state.time, time < last {
      recorder.problems.append("\(recorder.client): a snapshot of \(time) after that of \(last)")
    }
    if isReset { state.lists = [:] }
    isReset = false
    state.lists.merge(changes) { $1 }
    state.time = time
    state.token = token
    // The lists that no longer change are in the last snapshot.
    let keys = state.lists[AppendWorkload.lastKey] == nil ? Set(changes.keys).union(recorder.workload.keys) : nil
    let reads = keys.map { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, state.lists[$0] ?? .missing) })
    }
    changes = [:]
    // A listener may lag, but what it shows happened before it shows it.
    recorder.record(reads ?? state.lists, began: .min, at: time)
  }
}

/// A Listen stream over gRPC.
final class GRPCListEvents: ListEvents {
  private let grpc: GRPCConnection
  private let stream: UInt32

  init(port: UInt16, resuming token: [UInt8] = []) throws {
    grpc = try GRPCConnection(port: port)
    stream = grpc.open("Listen", headers: [("authorization", "Bearer owner")])
    grpc.send(GRPCListenTests.query(2, AppendWorkload.collection, token: token), on: stream)
  }

  func next() throws -> ListEvent {
    guard let message = try grpc.next(on: stream) else { throw LoopbackError("Listen ended") }
    if let change = Message.fields(3, of: message).first, let document = Message.fields(1, of: change).first {
      let (key, state) = GRPCAppendClient.state(of: document)
      return .changed(key: key, state)
    }
    guard let change = Message.fields(2, of: message).first else {
      return Message.fields(5, of: message).isEmpty ? .unexpected("\(message)") : .other
    }
    switch Message.number(1, of: change) ?? 0 {
    case 0:
      guard let time = GRPCAppendClient.time(6, of: change) else { return .other }
      return .snapshot(time, token: Message.fields(4, of: change).last ?? [])
    case 1: return .other
    case 3: return .current
    case 4: return .reset
    default: return .unexpected("the target ended: \(change)")
    }
  }
}

/// A Listen stream in a channel.
final class ChannelListEvents: ListEvents {
  private let channel: ChannelMessages

  init(port: UInt16) throws {
    channel = try ChannelMessages(
      port: port, "Listen",
      """
      {"database":"\(AppendWorkload.database)","addTarget":{"targetId":2,"query":{"parent":"\(AppendWorkload.root)",\
      "structuredQuery":{"from":[{"collectionId":"\(AppendWorkload.collection)"}]}}}}
      """)
  }

  func next() throws -> ListEvent { ListEvent(try channel.next()) }
}

/// A feed of server-sent events.
final class FeedListEvents: ListEvents {
  private let http: TestHTTPClient
  private var text: [UInt8] = []

  init(port: UInt16) throws {
    http = TestHTTPClient(port: port, timeoutSeconds: 40)
    let reply = try http.open(
      "GET", "/v1/\(AppendWorkload.root)/\(AppendWorkload.collection):listen",
      headers: [("Authorization", "Bearer owner"), ("Accept", "text/event-stream")])
    guard reply.status == 200 else { throw LoopbackError("no feed: \(reply.status)") }
  }

  func next() throws -> ListEvent {
    while true {
      while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Array(text[..<end])
        text.removeFirst(end + 1)
        guard line.starts(with: "data: ".utf8) else { continue }
        return ListEvent(try JSONNode(parsing: Array(line.dropFirst(6))))
      }
      guard let piece = try http.readPiece() else { throw LoopbackError("the feed ended") }
      text += piece
    }
  }
}

extension ListEvent {
  /// Reads the JSON form of a ListenResponse.
  init(_ message: JSONNode) {
    if let document = message["documentChange"]?["document"], let (key, state) = RESTAppendClient.state(of: document) {
      self = .changed(key: key, state)
    } else if let change = message["targetChange"] {
      switch change["targetChangeType"]?.stringValue ?? "NO_CHANGE" {
      case "NO_CHANGE":
        guard let time = change["readTime"]?.stringValue.flatMap({ Timestamp(rfc3339: $0.utf8) }) else {
          self = .other
          return
        }
        self = .snapshot(time, token: [])
      case "ADD": self = .other
      case "CURRENT": self = .current
      case "RESET": self = .reset
      default: self = .unexpected(message.text)
      }
    } else if message["filter"] != nil {
      self = .other
    } else {
      self = .unexpected(message.text)
    }
  }
}
