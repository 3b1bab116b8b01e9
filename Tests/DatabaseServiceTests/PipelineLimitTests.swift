import DatabaseService
import DocumentModel
import Testing
import TestSupport
import WireFormat

/// Pipelines that would need too much memory, stack or time, and bytes that are not a request.
@Suite struct PipelineLimitTests {
  private static let literal = PipelineCall("literals", [.entries([PipelineArgument.Entry("a", .text("x"))])])
  private static let limit = PipelineCall("limit", [.int(1)])

  private static func adding(_ name: String, _ value: PipelineArgument) -> PipelineCall {
    PipelineCall("add_fields", [.entries([PipelineArgument.Entry(name, value)])])
  }

  @Test func stagesOfARequestAreLimited() throws {
    let fixture = try ServiceFixture()
    #expect(try fixture.paths(of: [Self.literal] + Array(repeating: Self.limit, count: 499)) == ["-"])
    let nested = PipelineArgument.pipeline([Self.literal] + Array(repeating: Self.limit, count: 250))
    for stages in [
      [Self.literal] + Array(repeating: Self.limit, count: 500),
      [Self.literal, PipelineCall("union", [nested]), PipelineCall("union", [nested])],
      [Self.literal, Self.adding("b", .call("array", nested)), Self.adding("c", .call("array", nested))],
    ] {
      let failure = fixture.failure { _ = try fixture.paths(of: stages) }
      #expect(failure == Status(.invalidArgument, "A pipeline and those inside it can have at most 500 stages."))
    }
  }

  @Test func variablesOfARequestAreLimited() throws {
    let fixture = try ServiceFixture()
    func binding(_ count: Int) -> PipelineCall {
      PipelineCall("let", [.entries((0..<count).map { PipelineArgument.Entry("v\($0)", .field("a")) })])
    }
    #expect(try fixture.paths(of: [Self.literal, binding(500)]) == ["-"])
    let failure = fixture.failure { _ = try fixture.paths(of: [Self.literal, binding(501)]) }
    #expect(failure == Status(.invalidArgument, "Stage 2 (let): A pipeline can have at most 500 variables."))
  }

  @Test func nestingOfRowsIsLimited() throws {
    let fixture = try ServiceFixture()
    let path = Array(repeating: "a", count: 99).joined(separator: ".")
    #expect(try fixture.paths(of: [Self.literal, Self.adding("b." + path, .field("a"))]) == ["-"])
    for stages in [
      [Self.literal, Self.adding("b.c." + path, .field("a"))],
      [Self.literal, Self.adding("b." + path, .field("a")), Self.adding("c." + path, .field("b"))],
    ] {
      #expect(fixture.failure { _ = try fixture.paths(of: stages) }?.code == .invalidArgument)
    }
  }

  @Test func fieldsOfManyNamesAreSorted() throws {
    let fixture = try ServiceFixture()
    let fields = (0..<20_000).map { PipelineArgument.Entry("f\($0 * 7919 % 20_000)", .int($0)) }
    #expect(try fixture.paths(of: [Self.literal, PipelineCall("select", [.entries(fields)])]) == ["-"])
  }

  /// A pipeline that is too large alone gets that answer, not that others use the memory.
  @Test func errorNamesTheMemoryOfThePipeline() throws {
    let fixture = try ServiceFixture()
    let text = String(repeating: "x", count: 40_000)
    try fixture.commit(.set("c/d", ("t", Value.string(text)), ("n", .array((0..<1000).map { .integer($0) }))))
    let rows = [PipelineCall.collection("c"), PipelineCall("unnest", [.field("n"), .field("i")])]
    let failure = fixture.failure {
      _ = try fixture.paths(of: [Self.literal, Self.adding("all", .call("array", .pipeline(rows)))])
    }
    #expect(failure?.code == .resourceExhausted)
    #expect(failure?.message.contains("The pipeline holds more than") == true, "\(failure?.message ?? "")")
  }

  @Test func memoryOfAPipelineIsLimited() throws {
    let fixture = try ServiceFixture()
    let text = String(repeating: "x", count: 20_000)
    try fixture.commit(.set("c/d", ("t", Value.string(text)), ("n", .array((0..<200).map { .integer($0) }))))
    let rows = [PipelineCall.collection("c"), PipelineCall("unnest", [.field("n"), .field("i")])]
    func entries(_ name: String, _ value: PipelineArgument) -> PipelineArgument {
      .entries([PipelineArgument.Entry(name, value)])
    }
    let doubled = (0..<40).map { _ in Self.adding("a", .call("array", .field("a"), .field("a"))) }
    let options = [PipelineArgument.Entry("memory_limit", .int(1 << 20))]
    for stages in [
      rows + [PipelineCall("aggregate", [entries("all", .call("array_agg", .field("t")))])],
      rows + [
        PipelineCall(
          "distinct",
          [
            .entries([
              PipelineArgument.Entry("t", .field("t")), PipelineArgument.Entry("i", .field("i")),
            ])
          ])
      ],
      rows + [PipelineCall("sample", [.int(200), .text("documents")])],
      [Self.literal, Self.adding("all", .call("array", .pipeline(rows)))],
      [Self.literal] + doubled,
    ] {
      let failure = fixture.failure { _ = try fixture.paths(of: stages, options: options) }
      #expect(failure?.code == .resourceExhausted, "\(stages.last?.name ?? ""): \(failure?.message ?? "no failure")")
    }
    // Every pipeline has given its memory back.
    let count = PipelineCall("aggregate", [entries("n", .call("count"))])
    for _ in 0..<50 { #expect(try fixture.paths(of: rows + [count], options: options) == ["-"]) }
  }

  /// Without a limit of the client, the values of one row, and of one group, end at the limit of the server, because they
  /// do not continue in a temporary file.
  @Test func valuesOfOneRowAreLimited() throws {
    let fixture = try ServiceFixture()
    let text = String(repeating: "x", count: 900_000)
    try fixture.commit(.set("c/d", ("t", Value.string(text)), ("n", .array((0..<200).map { .integer($0) }))))
    let rows = [PipelineCall.collection("c"), PipelineCall("unnest", [.field("n"), .field("i")])]
    let all = PipelineArgument.entries([PipelineArgument.Entry("all", .call("array_agg", .field("t")))])
    for stages in [
      rows + [PipelineCall("aggregate", [all])],
      [Self.literal, Self.adding("all", .call("array", .pipeline(rows)))],
      [.collection("c")] + (0..<40).map { _ in Self.adding("t", .call("array", .field("t"), .field("t"))) },
    ] {
      let failure = fixture.failure { _ = try fixture.paths(of: stages) }
      #expect(failure?.code == .resourceExhausted, "\(stages.last?.name ?? ""): \(failure?.message ?? "no failure")")
    }
  }

  /// Rules that allow nothing deny every pipeline, also one that reads nothing or is only explained.
  @Test func withoutRulesEverythingIsDenied() throws {
    let fixture = try ServiceFixture(
      rules: """
        rules_version = '2';
        service cloud.firestore { match /databases/{database}/documents { match /{any=**} { allow read: if false; } } }
        """)
    try fixture.commit(.set("c/d", ("n", 1)))
    let all = PipelineArgument.pipeline([.collection("c")])
    let pipelines: [[PipelineCall]] = [
      [.collection("c")], [PipelineCall("collection_group", [.path(""), .text("c")])], [PipelineCall("database")],
      [PipelineCall("documents", [.path("/c/d")])], [PipelineCall("documents", [.path("/c/missing")])],
      [Self.literal], [Self.literal, PipelineCall("union", [all])],
      [Self.literal, Self.adding("b", .call("array", all))],
      [.collection("c"), PipelineCall("limit", [.int(0)])],
      [.collection("c"), .matching(.call("equal", .field("n"), .int(2)))],
      [.collection("c"), .matching(.call("equal", .field("n"), .int(2))), PipelineCall("delete")],
      [
        .collection("c"),
        PipelineCall("search", [], options: [PipelineArgument.Entry("query", .call("document_matches", .text("x")))]),
      ],
    ]
    let plan = PipelineArgument.entries([PipelineArgument.Entry("mode", .text("explain"))])
    for stages in pipelines {
      fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
        _ = try fixture.paths(of: stages, as: $0)
      }
      guard stages[0].name != "documents" else { continue }
      fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
        _ = try fixture.paths(of: stages, as: $0, options: [PipelineArgument.Entry("explain_options", plan)])
      }
    }
  }

  // MARK: Bytes

  private static func varint(_ number: Int) -> [UInt8] {
    number < 0x80 ? [UInt8(number)] : [UInt8(number & 0x7F) | 0x80] + varint(number >> 7)
  }

  /// A field whose content has a length.
  private static func field(_ number: Int, _ content: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(content.count) + content
  }

  /// A function or stage.
  private static func call(_ name: String, _ arguments: [UInt8]...) -> [UInt8] {
    field(1, Array(name.utf8)) + arguments.flatMap { field(2, $0) }
  }

  /// A request with these stages.
  private static func request(_ stages: [UInt8]...) -> [UInt8] { field(2, field(1, stages.flatMap { field(1, $0) })) }

  private static func plan(_ bytes: [UInt8]) -> Result<StructuredPipeline, WireError> {
    bytes.withRawBytes { bytes in
      do throws(WireError) {
        return .success(try ProtobufMessageDecoder().decode(bytes, ExecutePipelineRequest()).pipeline)
      } catch { return .failure(error) }
    }
  }

  @Test(arguments: [300, 3000, 100_000]) func deepBytesAreRefused(depth: Int) {
    // The lengths are wrong outside, which a decoder sees only after it has read the inside.
    let open: [[UInt8]] = [
      Self.varint(9 << 3 | 2) + Self.varint(0x0FFF_FFFF) + [1 << 3 | 2] + Self.varint(0x0FFF_FFFF),
      Self.varint(20 << 3 | 2) + Self.varint(0x0FFF_FFFF) + [2 << 3 | 2] + Self.varint(0x0FFF_FFFF),
    ]
    for part in open {
      let value = Array(repeatElement(part, count: depth).joined())
      if case .success = Self.plan(Self.request(Self.call("where", value))) { Issue.record("accepted") }
    }
    var value = Self.field(9, [])
    for index in 1...min(depth, 3000) {
      value = index % 2 == 0 ? Self.field(9, Self.field(1, value)) : Self.field(20, Self.call("not", value))
    }
    #expect(Self.plan(Self.request(Self.call("where", value))) == .failure(.model(.pipelineTooDeep)))
  }

  /// Any bytes are decoded or rejected without a crash, and what is decoded can be checked and run.
  @Test func mutatedBytesNeverTrap() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/d", ("n", 1)))
    let seed = TestSeeds.of("FUZZ_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    let whole = Self.request(
      Self.call("collection", Self.field(5, Array("/c".utf8))),
      Self.call("where", Self.field(20, Self.call("equal", Self.field(19, Array("n".utf8)), [2 << 3, 1]))))
    guard case .success(let pipeline) = Self.plan(whole) else { throw ModelError.unsetValue }
    #expect(try fixture.paths(of: pipeline.stages) == ["c/d"])
    for _ in 0..<5000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: place)
        case 2: bytes.removeLast(bytes.count - place)
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
      }
      guard case .success(let pipeline) = Self.plan(bytes) else { continue }
      let failure = fixture.failure { _ = try fixture.paths(of: pipeline.stages) }
      #expect(failure?.code != .internal, "seed \(seed): \(bytes)")
    }
  }
}
