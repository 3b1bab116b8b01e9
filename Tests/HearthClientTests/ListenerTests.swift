import Foundation
import Synchronization
import Testing

@testable import HearthClient

/// The reactions of a listener to the responses of a server, which a script provides.
@Suite(.timeLimit(.minutes(10))) struct ListenerTests {
  /// A transport that serves each new stream with the next part of a script, and keeps the last stream open.
  final class Script: HearthTransport {
    private let state: Mutex<(parts: [(status: Int, text: String)], requests: [HearthRequest])>

    init(_ parts: [(status: Int, text: String)]) { state = Mutex((parts, [])) }

    /// The resume tokens of the requests.
    var tokens: [String?] {
      state.withLock { $0.requests }.map { request in
        (try? request.body.map { try JSON(parsing: $0)["resumeToken"]?.text }) ?? nil
      }
    }

    func send(_ request: HearthRequest) async throws -> HearthResponse { throw HearthClientError(.network, "no calls") }

    func open(_ request: HearthRequest) async throws -> HearthStream {
      let (part, isLast) = state.withLock { state in
        state.requests.append(request)
        return (state.parts.removeFirst(), state.parts.isEmpty)
      }
      if part.status == 0 { throw HearthClientError(.network, part.text) }
      let (body, pieces) = AsyncThrowingStream<Data, any Error>.makeStream()
      // Split at every byte, the worst case for the parser.
      for byte in part.text.utf8 { pieces.yield(Data([byte])) }
      if !isLast || part.status >= 400 { pieces.finish() }
      return HearthStream(status: part.status, body: body)
    }
  }

  private static let root = "projects/demo/databases/(default)/documents"
  private static let add = event(#"{"targetChange":{"targetChangeType":"ADD","targetIds":[1]}}"#)
  private static let reset = event(#"{"targetChange":{"targetChangeType":"RESET","targetIds":[1]}}"#)

  private static func event(_ json: String) -> String { "data: \(json)\nid: x\n\n: a comment\n\n" }

  private static func document(_ id: String, _ second: Int) -> String {
    event(
      #"{"documentChange":{"document":{"name":"\#(root)/notes/\#(id)","fields":{"n":{"integerValue":"\#(second)"}},"#
        + #""createTime":"2026-01-01T00:00:00Z","updateTime":"2026-01-01T00:00:0\#(second)Z"},"targetIds":[1]}}"#)
  }

  private static func deleted(_ id: String) -> String {
    event(#"{"documentDelete":{"document":"\#(root)/notes/\#(id)","removedTargetIds":[1]}}"#)
  }

  private static func current(_ token: String) -> String {
    let point = #""resumeToken":"\#(token)","readTime":"2026-01-01T00:00:09Z""#
    return event(#"{"targetChange":{"targetChangeType":"CURRENT","targetIds":[1],\#(point)}}"#)
      + event(#"{"targetChange":{\#(point)}}"#)
  }

  private static func ended(_ code: Int) -> String {
    event(#"{"targetChange":{"targetChangeType":"REMOVE","targetIds":[1],"cause":{"code":\#(code),"message":"over"}}}"#)
  }

  private func summary(_ snapshot: QuerySnapshot<[String: Value]>?) -> String {
    guard let snapshot else { return "end" }
    let changes = snapshot.changes.map { "\($0.kind) \($0.document.id)" }.joined(separator: ", ")
    return snapshot.documents.map(\.id).joined() + ": " + changes
  }

  private func client(_ script: Script) -> Hearth {
    Hearth(transport: script, project: "demo", credentials: .bearer("t"))
  }

  @Test func recoversFromTemporaryErrors() async throws {
    let script = Script([
      (0, "the server is away"), (503, "a proxy's page"),
      // The stream breaks before the results are consistent: the listener discards them.
      (200, Self.add + Self.document("x", 1)),
      (200, Self.add + Self.document("a", 1) + Self.document("b", 1) + Self.current("one")),
      // The token of the caller expires.
      (200, Self.add + Self.current("two") + Self.ended(16)),
      // One stream breaks after half of the changes, and the next contains all of them.
      (200, Self.add + Self.document("a", 2)),
      (200, Self.add + Self.document("a", 2) + Self.deleted("b") + Self.current("three")),
    ])
    var snapshots = client(script).collection("notes").snapshots().makeAsyncIterator()
    #expect(summary(try await snapshots.next()) == "ab: added a, added b")
    #expect(summary(try await snapshots.next()) == "a: removed b, modified a")
    #expect(script.tokens == [nil, nil, nil, nil, "one", "two", "two"])
  }

  @Test func readsInconsistentResultsAgain() async throws {
    let script = Script([
      (200, Self.add + Self.document("a", 1) + Self.document("b", 1) + Self.current("one")),
      (200, Self.add + Self.event(#"{"filter":{"targetId":1,"count":1}}"#)),
      (200, Self.add + Self.document("b", 1) + Self.current("two")),
      // A server that lost its log sends everything, and the listener removes the missing documents.
      (200, Self.add + Self.reset + Self.document("c", 1) + Self.current("three")),
    ])
    var snapshots = client(script).collection("notes").snapshots().makeAsyncIterator()
    #expect(summary(try await snapshots.next()) == "ab: added a, added b")
    #expect(summary(try await snapshots.next()) == "b: removed a")
    #expect(summary(try await snapshots.next()) == "c: removed b, added c")
    #expect(script.tokens == [nil, "one", nil, "two"])
  }

  @Test(arguments: [
    (
      403, #"{"error":{"code":403,"status":"PERMISSION_DENIED","message":"no"}}"#,
      HearthClientError.Code.permissionDenied
    ),
    (401, #"{"error":{"code":401,"status":"UNAUTHENTICATED","message":"no"}}"#, .unauthenticated),
    (404, "a page", .notFound), (200, event("{nonsense}"), .unknown), (200, ended(7), .permissionDenied),
    (200, event(#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no"}}"#), .invalidArgument),
  ])
  func permanentErrorsEndTheListener(status: Int, text: String, code: HearthClientError.Code) async throws {
    var snapshots = client(Script([(status, text)])).collection("notes").snapshots().makeAsyncIterator()
    await #expect { try await snapshots.next() } throws: { ($0 as? HearthClientError)?.code == code }
  }

  @Test func readsErrors() {
    func error(_ status: Int, _ body: String) -> HearthClientError {
      HearthClientError(status: status, body: Data(body.utf8))
    }
    #expect(error(409, #"[{"error":{"status":"ABORTED","message":"m"}}]"#) == HearthClientError(.aborted, "m"))
    #expect(error(502, "<html>").code == .unavailable && error(502, "").isRetryable)
    #expect(error(400, #"{"error":{"code":400,"message":"WEAK_PASSWORD : too short"}}"#).reason == .weakPassword)
    #expect(error(400, #"{"error":{"code":400,"message":"Page size must be nonnegative."}}"#).reason == nil)
  }
}
