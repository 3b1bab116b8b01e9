import Foundation
import Testing

@testable import HearthClient

/// The JSON of queries, and their results.
@Suite struct QueryTests {
  static let users = detachedClient().collection("users")

  static let requests: [(Query, String)] = [
    (users.query, #"{"from":[{"collectionId":"users"}]}"#),
    (detachedClient().collectionGroup("notes"), #"{"from":[{"collectionId":"notes","allDescendants":true}]}"#),
    (
      users.where("age", .greaterThan, 17).where("Calorie intake", .equal, nil).order(by: "age", descending: true)
        .limit(to: 3),
      #"{"from":[{"collectionId":"users"}],"where":{"compositeFilter":{"op":"AND","filters":[{"fieldFilter":{"field":"#
        + #"{"fieldPath":"age"},"op":"GREATER_THAN","value":{"integerValue":"17"}}},{"unaryFilter":{"field":{"fieldPath":"#
        + #""`Calorie intake`"},"op":"IS_NULL"}}]}},"orderBy":[{"field":{"fieldPath":"age"},"direction":"DESCENDING"}],"#
        + #""limit":3}"#
    ),
    (
      users.where(.or([.field("a", .notEqual, .double(.nan)), .field("b", .isIn, [1, "x"])])).offset(2).select([]),
      #"{"select":{"fields":[{"fieldPath":"__name__"}]},"from":[{"collectionId":"users"}],"where":{"compositeFilter":"#
        + #"{"op":"OR","filters":[{"unaryFilter":{"field":{"fieldPath":"a"},"op":"IS_NOT_NAN"}},{"fieldFilter":{"field":"#
        + #"{"fieldPath":"b"},"op":"IN","value":{"arrayValue":{"values":[{"integerValue":"1"},{"stringValue":"x"}]}}}}]}},"#
        + #""offset":2}"#
    ),
    (
      users.order(by: "a").start(at: [1]).end(before: [5]).limit(toLast: 2),
      #"{"from":[{"collectionId":"users"}],"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"},"#
        + #"{"field":{"fieldPath":"__name__"},"direction":"DESCENDING"}],"startAt":{"values":[{"integerValue":"5"}]},"#
        + #""endAt":{"values":[{"integerValue":"1"}]},"limit":2}"#
    ),
  ]

  @Test(arguments: requests.indices) func convertsQueriesToJSON(index: Int) {
    let (query, json) = Self.requests[index]
    #expect(String(decoding: query.json.data, as: UTF8.self) == json)
  }

  @Test func percentEncodesTargets() {
    let client = Hearth(transport: detachedClient().connection.transport, project: "a b", database: "(default)")
    #expect(
      client.document("users/å?/n/a:listen").client.target("users/å?/n/a:listen")
        == "/v1/projects/a%20b/databases/(default)/documents/users/%C3%A5%3F/n/a%3Alisten")
  }

  struct Item: Codable, Equatable {
    var n: Int
    var tag: String
  }

  @Test func queriesReturnTheirResults() async throws {
    let hearth = try TestHearth()
    let items = try hearth.client().collection("items")
    for (id, n, tag) in [("a", 1, "x"), ("b", 2, "y"), ("c", 3, "x"), ("d", 4, "y"), ("e", 5, "x")] {
      try await items.document(id).set(Item(n: n, tag: tag))
    }
    func ids(_ query: some Queryable) async throws -> String {
      try await query.get(as: Item.self).documents.map(\.id).joined()
    }
    #expect(try await ids(items) == "abcde")
    #expect(try await ids(items.where("tag", .equal, "x").order(by: "n", descending: true)) == "eca")
    #expect(try await ids(items.where("n", .isIn, [2, 5]).where("tag", .notEqual, "z")) == "eb")
    #expect(try await ids(items.order(by: "n").limit(toLast: 2)) == "de")
    #expect(try await ids(items.order(by: "n").start(after: [2]).end(at: [4])) == "cd")
    // Pages.
    let query = items.where("n", .greaterThan, 1)
    let first = try await query.limit(to: 2).get(as: Item.self)
    #expect(first.data == [Item(n: 2, tag: "y"), Item(n: 3, tag: "x")] && first.readTime != nil)
    #expect(try await ids(query.limit(to: 2).start(after: #require(first.documents.last))) == "de")
    #expect(try await ids(query.end(before: #require(first.documents.last))) == "b")
    // Aggregations.
    #expect(try await query.count() == 4)
    #expect(try await query.sum(of: "n") == 14)
    #expect(try await items.average(of: "n") == 3)
    #expect(try await items.average(of: "none") == nil)
    #expect(try await items.aggregate([.count, .sum("n"), .average("n")]) == [5, 15, 3.0])
    // Queries below a document, and of a collection group.
    try await items.document("a").collection("parts").document("p").set(Item(n: 9, tag: "p"))
    #expect(try await ids(items.document("a").collection("parts").where("n", .equal, 9)) == "p")
    #expect(try await ids(items.client.collectionGroup("parts")) == "p")
    let names = try await items.select([]).get()
    #expect(names.documents.count == 5 && names.documents.allSatisfy { $0.fields.isEmpty })
  }

  @Test func findsTheNearestVectors() async throws {
    let hearth = try TestHearth()
    let items = try hearth.client().collection("items")
    for (id, vector) in [("a", [0, 0]), ("b", [1, 1]), ("c", [5, 5])] as [(String, VectorValue)] {
      try await items.document(id).set(["v": Value.vector(vector)])
    }
    let found = try await items.findNearest("v", to: [2, 2], limit: 2, distanceField: "d").get()
    #expect(found.documents.map(\.id) == ["b", "a"])
    #expect(found.documents.first?.fields["d"] == .double(2.0.squareRoot()))
  }

  @Test func reportsTheErrorsOfTheServer() async throws {
    let hearth = try TestHearth()
    let items = try hearth.client().collection("items")
    await #expect { try await items.limit(to: -1).get() } throws: { error in
      guard let error = error as? HearthClientError else { return false }
      return error.code == .invalidArgument && error.message == "limit is negative" && !error.isRetryable
    }
    await #expect { try await items.client.document("items").get() } throws: {
      ($0 as? HearthClientError)?.code == .invalidArgument
    }
  }
}
