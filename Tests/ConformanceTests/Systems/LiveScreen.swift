import TestSupport

/// An open screen of an app: the documents that a feed of server-sent events reports, kept up to date.
///
/// Use it on one thread. It reads only while a caller waits.
final class LiveScreen {
  /// The plain fields of the documents shown, by path.
  private(set) var documents: [String: JSONNode] = [:]
  /// The paths of reported changes, in order, since the screen was opened.
  private(set) var reported: [String] = []
  /// The position at which the feed can resume after a lost connection.
  private(set) var resumeToken: String?
  /// The code of the error that ended the feed, or zero.
  private(set) var endedWithCode = 0
  /// The status of the response. There is a feed only if it is 200.
  let status: Int
  private let client: TestHTTPClient
  private var received: [UInt8] = []
  private var isConsistent = false

  init(_ person: Person, _ method: String, _ target: String, _ body: JSONNode?, resumingAt token: String?) throws {
    client = TestHTTPClient(port: person.port, timeoutSeconds: 20)
    let headers = person.headers + [("Accept", "text/event-stream")] + (token.map { [("Last-Event-ID", $0)] } ?? [])
    status = try client.open(method, target, headers: headers, body: body.map { Array($0.text.utf8) }).status
  }

  /// Closes the connection, like a phone that loses its network.
  func disconnect() { client.close() }

  /// Reads until the screen is consistent and satisfies `holds`. Throws if nothing arrives for twenty seconds.
  func wait(until holds: (LiveScreen) -> Bool = { _ in true }) throws {
    while !isConsistent || !holds(self) {
      guard status == 200 else { throw ServerProcessError(description: "the server refused the feed: \(status)") }
      guard endedWithCode == 0 else { throw ServerProcessError(description: "the feed ended: \(endedWithCode)") }
      guard try readEvents() else { throw ServerProcessError(description: "the feed ended") }
    }
  }

  /// Reads until the server ends the feed.
  func waitForEnd() throws {
    while endedWithCode == 0, try readEvents() {}
  }

  /// Reads one part of the response. Returns `false` at its end.
  private func readEvents() throws -> Bool {
    guard let bytes = try client.readPiece() else { return false }
    received += bytes
    while let end = received.firstRange(of: [0x0A, 0x0A]) {
      let event = String(decoding: received[..<end.lowerBound], as: UTF8.self)
      received.removeSubrange(..<end.upperBound)
      for line in event.split(separator: "\n") where line.hasPrefix("data: ") {
        apply(try JSONNode(parsing: Array(line.utf8.dropFirst(6))))
      }
    }
    return true
  }

  private func apply(_ event: JSONNode) {
    if let change = event["targetChange"] {
      if let token = change["resumeToken"]?.stringValue { resumeToken = token }
      switch change["targetChangeType"]?.stringValue {
      case nil: isConsistent = true
      case "RESET": documents = [:]
      case "REMOVE": endedWithCode = change["cause"]?["code"]?.integerValue ?? 0
      default: break
      }
      return
    }
    isConsistent = false
    if let change = event["documentChange"], let json = change["document"] {
      let document = Document(json)
      reported.append(document.path)
      documents[document.path] = change["removedTargetIds"] == nil ? document.fields : nil
    } else if let gone = (event["documentDelete"] ?? event["documentRemove"])?["document"]?.stringValue {
      let path = gone.split(separator: "/").dropFirst(5).joined(separator: "/")
      reported.append(path)
      documents[path] = nil
    }
  }
}
