import DatabaseService
import DocumentModel
import GatewayCore
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

  /// Returns the project of a route that captures one.
  ///
  /// - Throws: `NOT_FOUND` if no project can have the name.
  static func project(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> RulesRegistry.Place {
    guard let id = DatabaseID(project: try call.text(0, of: request)) else {
      throw Status(.notFound, "No project can have this name.")
    }
    return .project(id.project)
  }

  /// Returns the database of a route that captures a project and a database.
  ///
  /// - Throws: ``ModelError`` if no database can have the name.
  static func database(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> RulesRegistry.Place {
    .database(try DocumentsPath.database(request, call))
  }

  /// Responds with the coverage of the rules in force.
  ///
  /// - Throws: `NOT_FOUND` if no rules exist.
  func sendCoverage(_ place: RulesRegistry.Place, asPage: Bool = false, _ call: RoutedCall) throws {
    let responder = call.responder
    guard let activeRuleset = try rules(call).activeRuleset(place), let watched = CoverageObserver.of(activeRuleset)
    else {
      throw Self.noRules
    }
    // The report of a long ruleset takes too long for the loop.
    responder.work {
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

  private func rules(_ call: RoutedCall) throws -> RulesRegistry {
    service.rules(as: try service.administrator(call.caller))
  }

  private static let noRules = Status(.notFound, "This project or database has no rules.")

  /// Loads the rules in the body of a request.
  ///
  /// - Throws: ``Status`` or ``WireError`` if the body is malformed.
  func load(_ place: RulesRegistry.Place, _ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let (rules, responder) = (try rules(call), call.responder)
    let upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
      RulesUpload(root)
    }
    guard let upload else { throw Status(.invalidArgument, "The body must be {\"rules\": {\"files\": […]}}.") }
    // Compiling a ruleset of some hundred kilobytes would delay the loop's other requests.
    responder.work { load(upload, into: rules, at: place, responder) }
  }

  /// Responds with the rules in force.
  ///
  /// - Throws: `NOT_FOUND` if no rules exist.
  func sendRules(_ place: RulesRegistry.Place, _ call: RoutedCall) throws {
    guard let activeRuleset = try rules(call).activeRuleset(place) else { throw Self.noRules }
    var json = JSONWriter(.pretty)
    json.beginObject()
    json.key("rules")
    RulesUpload(of: activeRuleset.ruleset).append(to: &json)
    json.endObject()
    call.responder.sendJSON(json.finish())
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
