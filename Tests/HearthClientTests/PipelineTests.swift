import Foundation
import Testing

@testable import HearthClient

/// The JSON of pipelines, and their results.
@Suite struct PipelineTests {
  static let notes = detachedClient().pipeline().collection("notes")

  static let requests: [(Pipeline, String)] = [
    (notes, #"{"name":"collection","args":[{"referenceValue":"/notes"}]}"#),
    (
      detachedClient().pipeline().collectionGroup("notes"),
      #"{"name":"collection_group","args":[{"referenceValue":""},{"stringValue":"notes"}]}"#
    ),
    (detachedClient().pipeline().database(), #"{"name":"database","args":[]}"#),
    (
      detachedClient().pipeline().documents([detachedClient().document("a/b")]),
      #"{"name":"documents","args":[{"referenceValue":"/a/b"}]}"#
    ),
    (
      detachedClient().pipeline().literals([["a": .constant(1)]]),
      #"{"name":"literals","args":[{"mapValue":{"fields":{"a":{"integerValue":"1"}}}}]}"#
    ),
    (
      notes.where("Calorie intake", .lessThan, 3),
      #"{"name":"where","args":[{"functionValue":{"name":"less_than","args":[{"fieldReferenceValue":"`Calorie intake`"},"#
        + #"{"integerValue":"3"}]}}]}"#
    ),
    (
      notes.select("a.b"), #"{"name":"select","args":[{"mapValue":{"fields":{"a.b":{"fieldReferenceValue":"a.b"}}}}]}"#
    ),
    (
      notes.sort(.descending("a")),
      #"{"name":"sort","args":[{"mapValue":{"fields":{"direction":{"stringValue":"descending"},"#
        + #""expression":{"fieldReferenceValue":"a"}}}}]}"#
    ),
    (
      notes.unnest(.field("tags"), as: "tag", index: "i"),
      #"{"name":"unnest","args":[{"fieldReferenceValue":"tags"},{"fieldReferenceValue":"tag"}],"#
        + #""options":{"index_field":{"fieldReferenceValue":"i"}}}"#
    ),
    (
      notes.union(with: notes),
      #"{"name":"union","args":[{"pipelineValue":{"stages":[{"name":"collection","args":[{"referenceValue":"/notes"}]}]}}]}"#
    ),
    (notes.sample(part: 0.5), #"{"name":"sample","args":[{"doubleValue":0.5},{"stringValue":"percent"}]}"#),
    (
      notes.define(["v": .field("a")]).where("b", .equal, .variable("v")),
      #"{"name":"where","args":[{"functionValue":{"name":"equal","args":[{"fieldReferenceValue":"b"},"#
        + #"{"variableReferenceValue":"v"}]}}]}"#
    ),
  ]

  @Test(arguments: requests.indices) func convertsStagesToJSON(index: Int) throws {
    let (pipeline, json) = Self.requests[index]
    #expect(String(decoding: try #require(pipeline.stages.last).json.data, as: UTF8.self) == json)
  }

  // MARK: Results

  struct Item: Codable, Equatable {
    var n: Int
    var tag: String
  }

  struct Tag: Codable, Equatable, Sendable {
    var tag: String
    var count: Int
    var sum: Double
  }

  private static func filled(_ hearth: TestHearth) async throws -> Hearth {
    let client = try hearth.client()
    for (id, n, tag) in [("a", 1, "x"), ("b", 2, "y"), ("c", 3, "x"), ("d", 4, "y"), ("e", 5, "x")] {
      try await client.collection("items").document(id).set(Item(n: n, tag: tag))
    }
    return client
  }

  @Test func rowsAreDecoded() async throws {
    let hearth = try TestHearth()
    let client = try await Self.filled(hearth)
    let least = 1
    let results = try await client.pipeline().collection("items").where("n", .greaterThan, least)
      .aggregate(["count": .count, "sum": .sum("n")], by: "tag").sort(.ascending("tag"))
      .get(as: Tag.self)
    #expect(results.data == [Tag(tag: "x", count: 2, sum: 8), Tag(tag: "y", count: 2, sum: 6)])
    #expect(results.rows.allSatisfy { $0.reference == nil && $0.updateTime == nil } && results.executionTime != nil)
  }

  @Test func documentsKeepTheirNames() async throws {
    let hearth = try TestHearth()
    let client = try await Self.filled(hearth)
    struct Named: Codable, Sendable {
      @DocumentID var id: String?
      var n: Int
    }
    let wanted = ["x", "z"]
    let results = try await client.pipeline().collection("items").where("tag", .isIn, wanted)
      .sort(.descending("n")).offset(1).limit(to: 1).get(as: Named.self)
    #expect(results.data.map(\.id) == ["c"] && results.data.map(\.n) == [3])
    #expect(results.rows.first?.reference?.path == "items/c" && results.rows.first?.createTime != nil)
  }

  @Test func pipelinesNest() async throws {
    let hearth = try TestHearth()
    let client = try await Self.filled(hearth)
    struct Row: Codable, Equatable, Sendable {
      var tag: String
      var items: [Int]
      var most: Int
    }
    let same = client.pipeline().collection("items").where("tag", .equal, .variable("t"))
    let rows = try await client.pipeline().literals([["tag": .constant("x")], ["tag": .constant("y")]])
      .define(["t": .field("tag")])
      .addFields([
        "items": .array(of: same.sort(.ascending("n")).select("n")),
        "most": .scalar(of: same.aggregate(["most": .maximum("n")])),
      ])
      .get(as: Row.self).data
    #expect(rows == [Row(tag: "x", items: [1, 3, 5], most: 5), Row(tag: "y", items: [2, 4], most: 4)])
  }

  @Test func pipelinesReadInTransactions() async throws {
    let hearth = try TestHearth()
    let client = try await Self.filled(hearth)
    let total = try await client.runTransaction { transaction in
      let sums = try await transaction.get(client.pipeline().collection("items").aggregate(["n": .sum("n")]))
      let fields: [String: FieldValue] = ["n": (sums.data.first?["n"] ?? .null).fieldValue]
      transaction.set(client.document("totals/all"), fields)
      return sums.data.first?["n"]
    }
    #expect(total == 15)
    #expect(try await client.document("totals/all").get().fields["n"] == 15)
  }

  @Test func plansAreText() async throws {
    let hearth = try TestHearth()
    let pipeline = try await Self.filled(hearth).pipeline().collection("items").where("n", .greaterThan, 3)
    #expect(try await pipeline.explain().hasPrefix("Tree:\n"))
    #expect(try await pipeline.explain(analyze: true).hasPrefix("Execution:\n results returned: 2\n"))
  }

  @Test func errorsNameTheStage() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let error = await #expect(throws: HearthClientError.self) {
      try await client.pipeline().collection("items").where(.function("no_such", .field("n"))).get()
    }
    #expect(error?.code == .invalidArgument && error?.message.contains("Stage 2 (where)") == true)
  }
}
