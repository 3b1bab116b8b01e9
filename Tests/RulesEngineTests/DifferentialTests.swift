import DocumentModel
import Foundation
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// Compares random expressions and queries with the official emulator, if it is installed.
///
/// Environment: `RULES_SEED` is a seed or `random`. `RULES_EXPRESSIONS` and `RULES_QUERIES` are the numbers of
/// comparisons.
@Suite(.needs(.emulator)) struct DifferentialTests {
  // Sorted by name, because the emulator keeps the order of the request, and Hearth sorts fields.
  static let fields = """
    {"a":{"integerValue":"1"},"b":{"bytesValue":"aGVsbG8="},"f":{"doubleValue":1.5},\
    "g":{"geoPointValue":{"latitude":10.5,"longitude":-20.25}},\
    "l":{"arrayValue":{"values":[{"integerValue":"1"},{"stringValue":"z"}]}},\
    "m":{"mapValue":{"fields":{"k":{"integerValue":"5"}}}},"n":{"nullValue":null},\
    "r":{"referenceValue":"projects/p/databases/(default)/documents/t/y"},"s":{"stringValue":"str"},\
    "t":{"timestampValue":"2020-02-29T12:34:56.789123Z"}}
    """

  private static let batch = 40

  @Test(arguments: TestSeeds.of("RULES_SEED", otherwise: [1, 2])) func expressionsEvaluateAsInTheEmulator(seed: UInt64)
    throws
  {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let oracle = RulesOracle(port: emulator.port, project: "p")
    for index in 0..<Self.batch { try oracle.put("t\(index)/x", fields: Self.fields) }
    let environment = ProcessInfo.processInfo.environment
    var remaining = environment["RULES_EXPRESSIONS"].flatMap(Int.init) ?? 400
    var generator = ExpressionGenerator(seed: seed)
    while remaining > 0 {
      // An expression that Hearth rejects is tried alone, because it would make the whole batch fail.
      var batch: [String] = []
      while batch.count < Self.batch {
        let expression = generator.next()
        remaining -= 1
        if (try? Ruleset(compiling: RulesFixture.rules("debug(\(expression))"))) != nil {
          batch.append(expression)
        } else {
          let isRejected = try oracle.load(RulesFixture.rules("debug(\(expression))")) != nil
          #expect(isRejected, "only Hearth rejects \(expression), seed \(seed)")
        }
      }
      try compare(batch, oracle, seed: seed)
    }
  }

  private func compare(_ batch: [String], _ oracle: RulesOracle, seed: UInt64) throws {
    var rules = "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
    var offsets: [Int] = []
    for (index, expression) in batch.enumerated() {
      rules += "match /t\(index)/{id} { allow get: if "
      offsets.append(rules.unicodeScalars.count)
      rules += "debug(\(expression)\n); }\n"
    }
    rules += "} }"
    if try oracle.load(rules) != nil {
      for expression in batch {
        let error = try oracle.load(RulesFixture.rules("debug(\(expression))"))
        // The emulator's type checker sometimes crashes.
        if error?.contains("\"code\":500") == true { continue }
        #expect(error == nil, "only the emulator rejects \(expression), seed \(seed)")
      }
      return
    }
    var statuses: [Int] = []
    for index in batch.indices { statuses.append(try oracle.get("t\(index)/x")) }
    let coverage = try oracle.coverage()
    let ours = try Ruleset(compiling: rules)
    for (index, expression) in batch.enumerated() {
      var request = RulesFixture.request
      request.path = RulesFixture.path("t\(index)/x")
      let documents = Documents()
      let decision = ours.decide(request, lookups: DocumentLookups(documents), explaining: .trace)
      let text = decision.trace.last?.value ?? "nothing"
      // If a replacement names a group that does not exist, the emulator fails the whole request.
      guard statuses[index] != 500 else {
        #expect(text.contains("undefined"), "\(expression): \(text), the emulator crashes, seed \(seed)")
        continue
      }
      let theirs = coverage[offsets[index]]?.max { $0.end < $1.end }?.value
      #expect(
        Self.same(text, theirs), "\(expression): \(text), not \(theirs?.text ?? "nothing"), seed \(seed)")
      #expect(decision.isAllowed == (statuses[index] == 200), "\(expression), seed \(seed)")
    }
  }

  /// In emulator mode, Hearth allows the queries that the emulator allows, except up to one percent of them plus one.
  /// In neither mode does it allow a query that the emulator denies.
  @Test(arguments: TestSeeds.of("RULES_SEED", otherwise: [1, 766_235, 780_242])) func queriesAreDecidedAsInTheEmulator(
    seed: UInt64
  ) throws {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let oracle = RulesOracle(port: emulator.port, project: "p")
    let environment = ProcessInfo.processInfo.environment
    var remaining = environment["RULES_QUERIES"].flatMap(Int.init) ?? 400
    var generator = QueryGenerator(seed: seed)
    var disagreements = 0
    // One percent may be decided differently.
    let disagreementsMax = 1 + remaining / 100
    while remaining > 0 {
      let conditions = (0..<Self.batch).map { _ in generator.condition() }
      let blocks = conditions.enumerated().map { "match /t\($0.offset)/{id} { allow list: if \($0.element); }" }
      let rules =
        "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
        + blocks.joined(separator: "\n") + "\n} }"
      if let message = try oracle.load(rules) {
        Issue.record("\(message), seed \(seed)")
        return
      }
      let ours = try Ruleset(compiling: rules)
      for (index, condition) in conditions.enumerated() {
        remaining -= 1
        var request = RulesRequest(.list, RulesFixture.path("t\(index)"), time: RulesFixture.time)
        var query = Query(collectionID: "t\(index)")
        query.filter = generator.filter()
        request.query = query
        let status = try oracle.runQuery("t\(index)", query.filter)
        // The emulator rejects some filters before it evaluates the rules.
        guard status == 200 || status == 403 else { continue }
        let isAllowed = ours.decide(request, mode: .emulator).isAllowed
        if isAllowed != (status == 200) { disagreements += 1 }
        // Hearth may conclude less from filters that contradict each other, but never more.
        #expect(
          !isAllowed || status == 200,
          "\(condition) for \(String(describing: query.filter)): only Hearth allows it, seed \(seed)")
        if ours.decide(request, mode: .sound).isAllowed {
          #expect(
            status == 200, "\(condition) for \(String(describing: query.filter)): only Hearth proves it, seed \(seed)")
        }
      }
    }
    #expect(disagreements <= disagreementsMax, "\(disagreements) queries are decided differently, seed \(seed)")
  }

  private static func same(_ ours: String, _ theirs: JSONNode?) -> Bool {
    guard let theirs, let node = try? JSONNode(parsing: Array(ours.utf8)) else { return false }
    if let failure = theirs["undefined"] {
      guard let message = node["undefined"]?["causeMessage"]?.stringValue else { return false }
      // A crash of the emulator has no cause.
      guard let cause = failure["causeMessage"]?.stringValue else { return true }
      // Hearth and the emulator quote values differently, so such messages are compared by their start.
      return message == cause || message.prefix(12) == cause.prefix(12)
    }
    return node.isSameValue(as: theirs)
  }
}
