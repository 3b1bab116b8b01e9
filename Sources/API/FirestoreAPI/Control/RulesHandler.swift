import GatewayCore
import DatabaseService
import Dispatch
import DocumentModel
import RulesEngine
import RulesTesting
import Transport
import WireFormat

/// Loads rules into a running emulator, and shows them (rules-language.md, section 17).
///
/// - `PUT /emulator/v1/projects/{p}:securityRules` sets the rules of all databases of a project that have none of
///   their own. `PUT /emulator/v1/projects/{p}/databases/{d}:securityRules` sets those of one database. Both take
///   effect immediately and override rules from files.
/// - `GET` of the same paths returns the rules in force.
/// - `GET …:ruleCoverage` and `…:ruleCoverage.html` report the result of each expression of the rules in force:
///   since the upload for uploaded rules, since the first such request for rules from files.
struct RulesHandler: Sendable {
  let service: FirestoreService

  /// The kinds of requests about rules.
  enum Verb: String, CaseIterable {
    case securityRules = ":securityRules"
    case ruleCoverage = ":ruleCoverage"
    case ruleCoveragePage = ":ruleCoverage.html"
  }

  /// Returns the request and the project or database that a path after `/emulator/v1/` names, or `nil` if the path
  /// is not about rules.
  static func target(_ path: UnsafeRawBufferPointer) -> (verb: Verb, place: RulesRegistry.Place)? {
    var decoded: [UInt8] = []
    guard PercentEncoding.decode(path, into: &decoded), PercentEncoding.isUTF8(decoded),
      let verb = Verb.allCases.first(where: { decoded.suffix($0.rawValue.utf8.count).elementsEqual($0.rawValue.utf8) })
    else { return nil }
    return place(decoded.dropLast(verb.rawValue.utf8.count)).map { (verb, $0) }
  }

  private static func place(_ path: ArraySlice<UInt8>) -> RulesRegistry.Place? {
    let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard parts.first == "projects", parts.count >= 2 else { return nil }
    if parts.count == 2 { return DatabaseID(project: parts[1]).map { .project($0.project) } }
    guard parts.count == 4, parts[2] == "databases" else { return nil }
    return DatabaseID(project: parts[1], database: parts[3]).map { .database($0) }
  }

  /// Handles a request about the rules of a project or a database.
  ///
  /// - Throws: ``Status`` or ``WireError`` if the request is malformed, or no rules exist.
  func handle(
    _ verb: Verb, _ place: RulesRegistry.Place, _ request: borrowing HTTPRequest, _ responder: Responder,
    as administrator: Administrator
  ) throws {
    let rules = service.rules(as: administrator)
    switch (verb, request.method) {
    case (.securityRules, _): try handleRules(rules, place, request, responder)
    case (_, .get): try handleCoverage(rules, asPage: verb == .ruleCoveragePage, place, responder)
    default: responder.sendText(404, "Not Found\n")
    }
  }

  private func handleCoverage(
    _ rules: RulesRegistry, asPage: Bool, _ place: RulesRegistry.Place, _ responder: Responder
  ) throws {
    guard let activeRuleset = rules.activeRuleset(place), let watched = CoverageObserver.of(activeRuleset)
    else {
      throw Self.noRules
    }
    // The report of a long ruleset takes too long for the loop.
    DispatchQueue.global(qos: .utility).async {
      let coverage = watched.coverage
      if asPage {
        let page = Array(Coverage.html([coverage]).utf8)
        return responder.onLoop { responder.sendPage(page) }
      }
      var json = JSONWriter(.pretty)
      json.beginObject()
      json.key("rules")
      RulesUpload(of: activeRuleset.ruleset).append(to: &json)
      json.key("report")
      coverage.appendReport(to: &json)
      json.endObject()
      let bytes = json.finish()
      responder.onLoop { responder.sendJSON(bytes) }
    }
  }

  private static let noRules = Status(.notFound, "This project or database has no rules.")

  private func handleRules(
    _ rules: RulesRegistry, _ place: RulesRegistry.Place, _ request: borrowing HTTPRequest, _ responder: Responder
  ) throws {
    switch request.method {
    case .put:
      let upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
        RulesUpload(root)
      }
      guard let upload else { throw Status(.invalidArgument, "The body must be {\"rules\": {\"files\": […]}}.") }
      // Compiling a ruleset of some hundred kilobytes would delay the loop's other requests.
      DispatchQueue.global(qos: .userInitiated).async { load(upload, into: rules, at: place, responder) }
    case .get:
      guard let activeRuleset = rules.activeRuleset(place) else { throw Self.noRules }
      var json = JSONWriter(.pretty)
      json.beginObject()
      json.key("rules")
      RulesUpload(of: activeRuleset.ruleset).append(to: &json)
      json.endObject()
      responder.sendJSON(json.finish())
    default: responder.sendText(404, "Not Found\n")
    }
  }

  private func load(
    _ upload: RulesUpload, into rules: RulesRegistry, at place: RulesRegistry.Place, _ responder: Responder
  ) {
    let diagnostics: [Diagnostic]
    do throws(RulesetError) {
      let ruleset = try Ruleset(compiling: upload.text)
      let activeRuleset = ActiveRuleset(ruleset)
      _ = CoverageObserver.of(activeRuleset)
      rules.upload(activeRuleset, to: place)
      diagnostics = ruleset.diagnostics
    } catch {
      let text = "Error compiling rules:\n" + error.summary
      guard upload.ignoresErrors else {
        return responder.onLoop { responder.sendError(Status(.invalidArgument, text)) }
      }
      rules.uploadBroken(text, to: place)
      diagnostics = error.diagnostics
    }
    responder.onLoop {
      var json = JSONWriter(.pretty)
      json.beginObject()
      let issues = diagnostics.filter { $0.severity != .lint }
      if !issues.isEmpty {
        json.key("issues")
        json.beginArray()
        for issue in issues { upload.append(issue, to: &json) }
        json.endArray()
      }
      json.endObject()
      responder.sendJSON(json.finish())
    }
  }
}
