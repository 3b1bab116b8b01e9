import DatabaseService
import DocumentModel
import FixtureTree
import GatewayCore
import Glibc
import RulesEngine
import RulesTesting
import Synchronization
import Transport
import WireFormat

// Tests of rules, for the editor of the console: runs of test files, and test files of logged requests.
extension DecisionLogAPI {
  /// Runs the cases of a test file by the rules in the body, which are not loaded. The file cannot name other files.
  ///
  /// With `"mutate": true`, also tries changes to the rules that no case may survive. That ends when the client
  /// disconnects, and after ``DecisionLogLimits/mutationSecondsMax``.
  func test(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
      RuleTestUpload(root)
    }
    guard let upload else {
      throw Status(.invalidArgument, "The body must be {\"rules\": {\"files\": […]}, \"tests\": \"…\"}.")
    }
    let responder = call.responder
    let stop = StopFlag()
    responder.exchange.onClose { stop.set() }
    responder.work {
      do {
        let bytes = try Self.report(of: upload, stop)
        responder.onLoop { responder.sendJSON(bytes) }
      } catch {
        let status = Self.status(of: error, database: nil)
        responder.onLoop { responder.sendError(status) }
      }
    }
  }

  /// The response to a failed run. `database` is the one that it reads, if any.
  static func status(of error: any Error, database: DatabaseID?) -> Status {
    switch error {
    case let error as RulesetError: return Status(.invalidArgument, "Error compiling rules:\n" + error.summary)
    case let error as FixtureTreeError:
      let place = error.line > 0 ? "Line \(error.line): " : ""
      return Status(.invalidArgument, place + error.message)
    default: return database.map { Status(error, database: $0) } ?? Status(fault: "the tests cannot be run: \(error)")
    }
  }

  /// Runs a test file.
  ///
  /// - Throws: `RulesetError` or `FixtureTreeError` if the rules or the file are invalid.
  private static func report(of upload: RuleTestUpload, _ stop: StopFlag) throws -> [UInt8] {
    let text = upload.rules.text
    let ruleset = try Ruleset(compiling: text, service: RuleTestSuite.service(of: text))
    let suite = try SuiteReader(rules: text, now: now()).read(Array(upload.tests.utf8), file: "tests")
    var coverage: Coverage? = Coverage(file: "rules", ruleset)
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("run")
    run.append(to: &json)
    json.key("coverage")
    coverage?.appendReport(to: &json)
    if upload.mutates {
      let end = ContinuousClock.now + .seconds(DecisionLogLimits.mutationSecondsMax)
      let found = MutationTest(ruleset, file: "rules", [run]) { stop.isSet || ContinuousClock.now >= end }
      json.key("mutations")
      json.beginObject()
      json.key("tried")
      json.number(found.count)
      json.key("complete")
      json.bool(found.isComplete)
      json.key("survivors")
      json.beginArray()
      for survivor in found.survivors {
        json.beginObject()
        json.key("line")
        json.number(survivor.line)
        json.key("change")
        json.string(survivor.change)
        json.endObject()
      }
      json.endArray()
      json.endObject()
    }
    json.endObject()
    return json.finish()
  }

  /// The time of cases that name none.
  static func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(uncheckedMicroseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
  }

  /// Returns the logged requests as test files, whose cases expect the decisions that were made.
  func record(_ call: RoutedCall) {
    let (log, responder) = (log, call.responder)
    responder.work {
      let recording = CaseRecording()
      for entry in log.entries() {
        guard let database = entry.record.database else { continue }
        for test in log.tests(of: entry) { recording.add(test, by: entry.record.ruleset, in: database) }
      }
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("suites")
      json.beginArray()
      for suite in recording.finish().suites {
        json.beginObject()
        json.key("service")
        json.string(suite.ruleset.service)
        json.key("rules")
        json.string(String(decoding: suite.ruleset.source.bytes, as: UTF8.self))
        json.key("count")
        json.number(suite.count)
        json.key("tests")
        json.string(String(decoding: suite.text(rules: "firestore.rules"), as: UTF8.self))
        json.endObject()
      }
      json.endArray()
      json.endObject()
      let bytes = json.finish()
      responder.onLoop { responder.sendJSON(bytes) }
    }
  }
}

/// The body of a run of tests: rules, the text of a test file, and whether to try changes to the rules.
struct RuleTestUpload: Sendable {
  let rules: RulesUpload
  let tests: String
  let mutates: Bool

  /// Reads a body. Returns `nil` if a member is missing.
  init?(_ root: JSONValue) {
    guard let rules = RulesUpload(root), case .object(var members) = root.kind else { return nil }
    var tests: String?
    var mutates = false
    while let (name, value) = members.next() {
      switch value.kind {
      case .string(let bytes) where "tests" ~= name: tests = String(decoding: bytes, as: UTF8.self)
      case .boolean(let flag) where "mutate" ~= name: mutates = flag
      default: continue
      }
    }
    guard let tests else { return nil }
    self.rules = rules
    self.tests = tests
    self.mutates = mutates
  }
}

/// Tells work on another thread to stop.
private final class StopFlag: Sendable {
  private let value = Atomic(false)

  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}
