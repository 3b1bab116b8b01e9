import Foundation
import HearthClient
import Testing

/// The code that the console shows for pipelines. Each function below contains a pipeline as the console's editor has it,
/// and its code for HearthClient. These tests run the code. `.ci/console/modules.py` checks that the console shows it.
@Suite(.timeLimit(.minutes(10))) struct ConsolePipelineTests {
  private typealias Row = (id: String, fields: [String: Value])
  private typealias Code = @Sendable (Hearth, (String, [String: Value]) -> Void) async throws -> Void

  private static func products(_ hearth: Hearth) async throws {
    func added(_ day: Int) -> Value { .timestamp(Timestamp(Date(timeIntervalSince1970: Double(day) * 86_400))) }
    let rows: [(String, [String: Value])] = [
      (
        "red-mug",
        [
          "name": "Red mug", "category": "kitchen", "price": 12.5, "stock": 40, "tags": ["gift"],
          "added": added(20_000),
        ]
      ),
      (
        "tea-pot",
        [
          "name": "Tea pot", "category": "kitchen", "price": 34, "stock": 8, "tags": ["gift", "clay"],
          "added": added(20_300),
        ]
      ),
      (
        "desk-lamp",
        ["name": "Desk lamp", "category": "desk", "price": 48, "stock": 5, "tags": [], "added": added(20_400)]
      ),
      (
        "bag",
        ["name": "Bag", "category": "travel", "price": 9.0, "stock": 1, "tags": ["gift"], "added": added(20_000)]
      ),
    ]
    for (id, fields) in rows { try await hearth.document("products/\(id)").set(fields) }
    for stars in [4, 5] { try await hearth.document("products/bag/reviews/\(stars)").set(["stars": stars]) }
  }

  private static func rows(of code: Code) async throws -> [Row] {
    let server = try TestHearth()
    let hearth = try server.client()
    try await products(hearth)
    var rows: [Row] = []
    try await code(hearth) { rows.append(($0, $1)) }
    return rows
  }

  @Test func groupsRows() async throws {
    let rows = try await Self.rows(of: Self.groups)
    #expect(rows.map { $0.fields["category"] } == ["kitchen", "desk"])
    #expect(rows.map { $0.fields["n"] } == [2, 1])
    #expect(rows.map { $0.fields["price"] } == [23.25, 48.0])
    #expect(rows.map { $0.fields["stock"] } == [48, 5])
  }

  @Test func computesFields() async throws {
    let rows = try await Self.rows(of: Self.computedFields)
    #expect(rows.map(\.id) == ["tea-pot", "desk-lamp"])
    #expect(rows.map { $0.fields["double"] } == [69, 97])
    #expect(rows.map { $0.fields["loud"] } == ["TEA POT", "DESK LAMP"])
    #expect(rows.allSatisfy { $0.fields["tags"] == nil && $0.fields["stock"] != nil })
  }

  @Test func repeatsRowsForElements() async throws {
    let rows = try await Self.rows(of: Self.elements)
    #expect(rows.map { $0.fields["tag"] } == ["clay", "gift", "gift"])
    #expect(rows.map { $0.fields["category"] } == ["kitchen", "kitchen", "travel"])
  }

  @Test func keepsConstants() async throws {
    let rows = try await Self.rows(of: Self.constants)
    #expect(rows.map { $0.fields["odd"] } == [false, true])
    #expect(rows.allSatisfy { $0.fields["text"] == "a \"b\" \\ \u{1}" && $0.fields["nothing"] == .null })
    #expect(rows.allSatisfy { $0.fields["list"] == [1, 2.0, "x", nil] })
  }

  @Test func readsDocuments() async throws {
    #expect(try await Self.rows(of: Self.documents).map(\.fields) == [["n": "Red mug"], ["n": "Tea pot"]])
  }

  @Test func readsTheWholeDatabase() async throws {
    #expect(try await Self.rows(of: Self.wholeDatabase).map(\.fields) == [["n": 4, "most": 48, "kinds": 3]])
  }

  @Test func readsStagesOfTheAPI() async throws {
    let names = try await Self.rows(of: Self.stagesOfTheAPI).compactMap { $0.fields["v"] }
    #expect(Set(names) == ["Red mug", "Bag"])
  }

  // MARK: - The code

  // swift-format-ignore
  private static func groups(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // collection products
    // where price > 5 && category != "travel"
    // aggregate count() as n, average(price) as price, sum(stock) as stock by category
    // sort n desc
    // code:
    let results = try await hearth.pipeline()
      .collection("products")
      .where(
        .and(
          [
            .comparison(.field("price"), .greaterThan, .constant(5)),
            .comparison(.field("category"), .notEqual, .constant("travel"))
          ]
        )
      )
      .aggregate(["n": .count, "price": .average("price"), "stock": .sum("stock")], by: "category")
      .sort(.descending("n"))
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func computedFields(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // collection products
    // where price >= 9.0
    // where !starts_with(name, "Red")
    // add_fields price * 2 + 1 as double, to_upper(name) as loud
    // remove_fields tags, category
    // sort -1 * price desc, name
    // offset 1
    // limit 3
    // code:
    let results = try await hearth.pipeline()
      .collection("products")
      .where("price", .greaterThanOrEqual, 9.0)
      .where(.not(.function("starts_with", .field("name"), .constant("Red"))))
      .addFields(
        [
          "double": RowExpression.field("price").multiplied(by: .constant(2)).adding(.constant(1)),
          "loud": .function("to_upper", .field("name"))
        ]
      )
      .removeFields("tags", "category")
      .sort(.descending(RowExpression.constant(-1).multiplied(by: .field("price"))), .ascending("name"))
      .offset(1)
      .limit(to: 3)
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func elements(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // collection products
    // unnest tags as tag
    // distinct tag, category
    // sort tag, category
    // code:
    let results = try await hearth.pipeline()
      .collection("products")
      .unnest(.field("tags"), as: "tag")
      .distinct("tag", "category")
      .sort(.ascending("tag"), .ascending("category"))
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func constants(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // collection_group reviews
    // select stars % 2 == 1 as odd, "a \"b\" \\ \u0001" as text, null as nothing, [1, 2.0, "x", null] as list
    // sort odd
    // code:
    let results = try await hearth.pipeline()
      .collectionGroup("reviews")
      .select(
        [
          "odd": .comparison(.function("mod", .field("stars"), .constant(2)), .equal, .constant(1)),
          "text": .constant("a \"b\" \\ \u{0001}"),
          "nothing": .constant(Value.null),
          "list": .constant([1, .double(2.0), "x", nil] as Value)
        ]
      )
      .sort(.ascending("odd"))
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func documents(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // documents products/red-mug, products/tea-pot
    // where equal_any(category, ["kitchen", "desk"]) || price == 0
    // replace_with map("n", name)
    // sort n
    // code:
    let results = try await hearth.pipeline()
      .documents([hearth.document("products/red-mug"), hearth.document("products/tea-pot")])
      .where(
        .or(
          [
            .comparison(.field("category"), .isIn, .constant(["kitchen", "desk"] as Value)),
            .comparison(.field("price"), .equal, .constant(0))
          ]
        )
      )
      .replace(with: .function("map", .constant("n"), .field("name")))
      .sort(.ascending("n"))
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func wholeDatabase(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // database
    // where exists(price)
    // aggregate count() as n, maximum(price) as most, count_distinct(category) as kinds
    // code:
    let results = try await hearth.pipeline()
      .database()
      .where(.exists("price"))
      .aggregate(["n": .count, "most": .maximum("price"), "kinds": .countDistinct("category")])
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }

  // swift-format-ignore
  private static func stagesOfTheAPI(_ hearth: Hearth, _ print: (String, [String: Value]) -> Void) async throws {
    // pipeline:
    // [{"name": "collection", "args": [{"referenceValue": "/products"}]}, {"name": "where", "args": [{"functionValue": {"name": "less_than", "args": [{"fieldReferenceValue": "added"}, {"timestampValue": "2025-02-01T00:00:00Z"}]}}]}, {"name": "let", "args": [{"mapValue": {"fields": {"t": {"fieldReferenceValue": "name"}}}}]}, {"name": "select", "args": [{"mapValue": {"fields": {"v": {"variableReferenceValue": "t"}}}}]}]
    // code:
    let results = try await hearth.pipeline()
      .collection("products")
      .where("added", .lessThan, try Date("2025-02-01T00:00:00Z", strategy: .iso8601))
      .define(["t": .field("name")])
      .select(["v": .variable("t")])
      .get()
    for row in results.rows {
      print(row.reference?.id ?? "", row.fields)
    }
    // end
  }
}
