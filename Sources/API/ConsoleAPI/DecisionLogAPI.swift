package import DatabaseService
import DocumentModel
package import GatewayCore
import RulesEngine
import RulesTesting
package import Transport
import WireFormat

/// Serves the log of requests, and evaluates rules that are not in force. In production, operators read the log of a
/// ``DecisionRecording``.
///
/// - `GET /hearth/v1/requests?after=N` lists the requests about which rules decided, oldest first, and the number of the
///   last one.
/// - `GET /hearth/v1/requests/{number}` evaluates a request again and returns the value of each expression.
/// - `DELETE /hearth/v1/requests` empties the log.
/// - `POST /hearth/v1/requests:replay` evaluates all requests by the rules in the body, and lists those that they would
///   decide differently.
/// - `GET /hearth/v1/requests:record` returns the logged requests as test files, one for each ruleset.
/// - `POST /hearth/v1/rules:check` returns the diagnostics of the rules in the body.
/// - `POST /hearth/v1/rules:test` runs the test file in the body by the rules in the body.
/// - `POST /hearth/v1/projects/{p}/databases/{d}/rules:try` decides about one request by the rules in the body, over the
///   documents of the database.
///
/// The calls with a body take `{"rules": {"files": [{"content": …}]}}` and load nothing.
package final class DecisionLogAPI: API {
  package let authenticator: Authenticator
  let log: DecisionLog
  let service: FirestoreService

  /// Creates the API for a log. `service` reads the documents for requests that are tried.
  package init(_ log: DecisionLog, _ service: FirestoreService, _ authenticator: Authenticator) {
    self.log = log
    self.service = service
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<DecisionLogAPI>] {
    [
      Route(.get, ["/hearth/v1/requests"], kind: .control, access: .administratorOrEmulator) { try $0.list($1, $2) },
      Route(.delete, ["/hearth/v1/requests"], kind: .control, access: .administratorOrEmulator) { api, _, call in
        api.log.removeAll()
        call.responder.sendJSON(Array("{}\n".utf8))
      },
      Route(.get, ["/hearth/v1/requests/{number}"], kind: .control, access: .administratorOrEmulator) {
        try $0.explain($1, $2)
      },
      Route(.post, ["/hearth/v1/requests:replay"], kind: .control, access: .emulator) { try $0.replay($1, $2) },
      Route(.get, ["/hearth/v1/requests:record"], kind: .control, access: .emulator) { api, _, call in
        api.record(call)
      },
      Route(.post, ["/hearth/v1/rules:check"], kind: .control, access: .administratorOrEmulator) {
        try $0.check($1, $2)
      },
      Route(.post, ["/hearth/v1/rules:test"], kind: .control, access: .emulator) { try $0.test($1, $2) },
      Route(
        .post, ["/hearth/v1/projects/{project}/databases/{database}/rules:try"], kind: .control, access: .emulator
      ) { try $0.tryRequest($1, $2) },
    ]
  }

  /// Returns the caller of a request. No particular caller is needed, so unknown credentials are ignored.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) -> Caller {
    (try? authenticator.caller(of: request)) ?? .unauthenticated
  }

  private func list(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    // The console names its project, because a server can have several.
    try parameters.allowOnly("after", "project")
    let text = parameters.value("after")
    guard let after = text.map({ Int($0) }) ?? 0 else {
      throw Status(.invalidArgument, "The parameter `after` must be a number.")
    }
    let (log, responder) = (log, call.responder)
    responder.work {
      let entries = log.entries(after: after)
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("requests")
      json.beginArray()
      for entry in entries { json.append(entry, tests: log.tests(of: entry)) }
      json.endArray()
      json.key("last")
      json.number(entries.last?.number ?? after)
      json.endObject()
      let bytes = json.finish()
      responder.onLoop { responder.sendJSON(bytes) }
    }
  }

  private func explain(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    guard let entry = Int(try call.text(0, of: request)).flatMap(log.entry) else {
      throw Status(.notFound, "The log does not contain this request.")
    }
    let (log, responder) = (log, call.responder)
    responder.work {
      let (tests, ruleset) = (log.tests(of: entry), entry.record.ruleset)
      let runner = TestCaseRunner()
      var room = DecisionLogLimits.expressionsMax
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("request")
      json.append(entry, tests: tests)
      json.append(
        tests.map { runner.run($0, by: ruleset, over: TestDocuments(), explaining: .trace) }, ruleset, room: &room)
      json.endObject()
      let bytes = json.finish()
      responder.onLoop { responder.sendJSON(bytes) }
    }
  }

  private func replay(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let text = try Self.rules(in: request)
    let (log, responder) = (log, call.responder)
    responder.work {
      do throws(RulesetError) {
        let ruleset = try Ruleset(compiling: text, service: RuleTestSuite.service(of: text))
        let runner = TestCaseRunner()
        var json = JSONWriter(.compact)
        json.beginObject()
        json.key("changed")
        json.beginArray()
        var count = 0
        for entry in log.entries() where entry.record.ruleset.service == ruleset.service {
          let tests = log.tests(of: entry)
          guard !tests.isEmpty else { continue }
          count += 1
          let isAllowed = tests.allSatisfy { runner.run($0, by: ruleset, over: TestDocuments()).isAllowed }
          if isAllowed != entry.record.isAllowed { json.append(entry, tests: tests) }
        }
        json.endArray()
        json.key("evaluated")
        json.number(count)
        json.endObject()
        let bytes = json.finish()
        responder.onLoop { responder.sendJSON(bytes) }
      } catch {
        let status = Status(.invalidArgument, "Error compiling rules:\n" + error.summary)
        responder.onLoop { responder.sendError(status) }
      }
    }
  }

  private func check(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let text = try Self.rules(in: request)
    let responder = call.responder
    responder.work {
      let diagnostics: [Diagnostic]
      do throws(RulesetError) {
        diagnostics = try Ruleset(compiling: text, service: RuleTestSuite.service(of: text)).diagnostics
      } catch { diagnostics = error.diagnostics }
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("diagnostics")
      json.beginArray()
      for diagnostic in diagnostics { json.append(diagnostic) }
      json.endArray()
      json.endObject()
      let bytes = json.finish()
      responder.onLoop { responder.sendJSON(bytes) }
    }
  }

  /// Returns the rules in a body.
  ///
  /// - Throws: ``Status`` or ``WireError`` if the body is malformed.
  private static func rules(in request: borrowing HTTPRequest) throws -> String {
    let upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
      RulesUpload(root)
    }
    guard let upload else { throw Status(.invalidArgument, "The body must be {\"rules\": {\"files\": […]}}.") }
    return upload.text
  }
}
