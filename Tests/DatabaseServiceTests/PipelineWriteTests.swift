import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import PipelineEngine
import Testing
import TestSupport
import WireFormat

/// The stages `update` and `delete` while other clients write the same documents.
@Suite struct PipelineWriteTests {
  private static let c = PipelineCall.collection("c")
  private static let ofOld = PipelineCall.matching(.call("equal", .field("status"), .text("old")))
  private static let delete = PipelineCall("delete")

  private static func update(_ name: String, _ value: PipelineArgument) -> PipelineCall {
    PipelineCall("update", [.entries([PipelineArgument.Entry(name, value)])])
  }

  private static func sort(_ name: String) -> PipelineCall {
    PipelineCall(
      "sort",
      [
        .entries([
          PipelineArgument.Entry("expression", .field(name)), PipelineArgument.Entry("direction", .text("ascending")),
        ])
      ])
  }

  private static func fixture(_ count: Int = 5) throws -> ServiceFixture {
    let fixture = try ServiceFixture()
    for number in 0..<count {
      try fixture.commit(.set("c/d\(number)", ("n", .integer(Int64(number))), ("status", "old")))
    }
    return fixture
  }

  /// Runs a pipeline, and `change` after it has been authorized, when the state that it reads is fixed, and then after
  /// each slice. Returns the number of documents that it has written.
  private static func run(
    _ stages: [PipelineCall], _ fixture: ServiceFixture, change: (_ slice: Int) throws -> Void
  ) throws -> Value? {
    let cursor = try fixture.service.executePipeline(
      ExecutePipelineRequest(StructuredPipeline(stages)), in: fixture.id, as: ServiceFixture.admin)
    var modified: Value?
    var slice = 0
    try change(slice)
    while !cursor.isAtEnd {
      try cursor.slice { row in
        modified = try row.fields.value(for: "documents_modified").map { try ValueCodec.decode($0) }
        return true
      }
      slice += 1
      if !cursor.isAtEnd { try change(slice) }
    }
    return modified
  }

  /// Stages through which a row keeps the version that was read: in place, after a sort, and without its times.
  private static let shapes: [[PipelineCall]] = [
    [], [ofOld], [sort("n"), PipelineCall("limit", [.int(10)])],
    [
      PipelineCall(
        "select",
        [
          .entries(["n", "status", "__name__"].map { PipelineArgument.Entry($0, .field($0)) })
        ]), sort("n"), PipelineCall("offset", [.int(0)]),
    ],
  ]

  @Test(arguments: shapes.indices) func updateKeepsTheWritesOfOthers(shape: Int) throws {
    let fixture = try Self.fixture()
    let more = Self.update("n", .call("add", .field("n"), .int(100)))
    let modified = try Self.run([Self.c] + Self.shapes[shape] + [more], fixture) { slice in
      if slice == 0 { try fixture.commit(.set("c/d4", ("n", 7000), ("status", "old"))) }
    }
    #expect(modified == .integer(5))
    #expect(try fixture.get("c/d3")["n"] == .integer(103))
    #expect(try fixture.get("c/d4")["n"] == .integer(7100))
  }

  @Test func documentsOfNamesAreEvaluatedAgain() throws {
    let fixture = try Self.fixture()
    let named = PipelineCall("documents", [.path("/c/d1"), .path("/c/d2")])
    let modified = try Self.run([named, Self.update("flag", .int(1))], fixture) { slice in
      if slice == 0 { try fixture.commit(.set("c/d2", ("n", 7000))) }
    }
    #expect(modified == .integer(2))
    #expect(try fixture.get("c/d2").fields == MapValue([("flag", .integer(1)), ("n", .integer(7000))]))
  }

  @Test(arguments: [false, true]) func documentsThatNoLongerMatchStay(isDelete: Bool) throws {
    let fixture = try Self.fixture()
    let stages = [Self.c, Self.ofOld, isDelete ? Self.delete : Self.update("flag", .int(1))]
    let modified = try Self.run(stages, fixture) { slice in
      if slice == 0 { try fixture.commit(.set("c/d3", ("status", "new"))) }
    }
    #expect(modified == .integer(4))
    #expect(try fixture.get("c/d3").fields == MapValue([("status", .string("new"))]))
  }

  @Test(arguments: [false, true]) func documentsThatWereDeletedStayDeleted(isDelete: Bool) throws {
    let fixture = try Self.fixture()
    let modified = try Self.run([Self.c, isDelete ? Self.delete : Self.update("flag", .int(1))], fixture) { slice in
      if slice == 0 { try fixture.commit(.delete("c/d3")) }
    }
    #expect(modified == .integer(4))
    #expect(fixture.failure { _ = try fixture.get("c/d3") }?.code == .notFound)
  }

  /// A document that changes before each attempt ends the pipeline. No write is lost.
  @Test func constantChangesAbortThePipeline() throws {
    let fixture = try Self.fixture()
    var last = 0
    let failure = fixture.failure {
      _ = try Self.run([Self.c, Self.update("flag", .int(1))], fixture) { slice in
        last = 1000 + slice
        try fixture.commit(.set("c/d2", ("n", .integer(Int64(last)))))
      }
    }
    #expect(failure?.code == .aborted)
    #expect(failure?.message.contains("c/d2") == true && failure?.message.contains("4 documents") == true)
    #expect(try fixture.get("c/d2").fields == MapValue([("n", .integer(Int64(last)))]))
    #expect(try fixture.get("c/d1")["flag"] == .integer(1))
  }

  /// A row that names another document than it was made from, and rows of the request, replace what is there. Each
  /// document is written once.
  @Test func rowsWithANewNameReplaceDocuments() throws {
    let fixture = try Self.fixture()
    let name = PipelineArgument.constant(.reference("\(fixture.id.documentsRoot)/c/d4"))
    let renamed = PipelineCall("add_fields", [.entries([PipelineArgument.Entry("__name__", name)])])
    let modified = try Self.run(
      [Self.c, .matching(.call("less_than", .field("n"), .int(2))), renamed, Self.update("flag", .int(1))], fixture
    ) { slice in
      if slice == 0 { try fixture.commit(.set("c/d4", ("n", 7000))) }
    }
    #expect(modified == .integer(1))
    #expect(try fixture.get("c/d4")["n"] == .integer(0))
  }

  @Test func writesOfThePastAreRefused() throws {
    let fixture = try Self.fixture()
    let time = Timestamp(uncheckedMicroseconds: try fixture.get("c/d4").updateTime)
    let failure = fixture.failure {
      _ = try fixture.paths(of: [Self.c, Self.delete]) { $0.consistency = .readTime(time) }
    }
    #expect(failure == Status(.invalidArgument, "A pipeline that writes documents cannot read in the past."))
  }
}
