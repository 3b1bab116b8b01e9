import DocumentModel
import Testing
import TestSupport

/// Aggregations follow firestore-api.md, section 5.1.
@Suite struct AggregationTests {
  private static let rows: [(values: [Value], sum: Value, average: Value)] = [
    ([], .integer(0), .null),
    (["a", .null, [1]], .integer(0), .null),
    ([1, 2, 3], .integer(6), .double(2)),
    ([1, 2.5, "a"], .double(3.5), .double(1.75)),
    ([1, 2.0], .double(3), .double(1.5)),
    ([.integer(.max), 1, -1], .integer(.max), .double(0x1p63 / 3)),
    ([.integer(.max), 1], .double(0x1p63), .double(0x1p62)),
    ([.integer(.min), -1], .double(-0x1p63), .double(-0x1p62)),
    ([.integer(.max), .integer(.max), .integer(.min), .integer(.min)], .integer(-2), .double(-0.5)),
    ([1, .double(.nan)], .double(.nan), .double(.nan)),
    ([.double(.infinity), .double(-.infinity)], .double(.nan), .double(.nan)),
    ([.double(.infinity), 1], .double(.infinity), .double(.infinity)),
    ([.double(.greatestFiniteMagnitude), .double(.greatestFiniteMagnitude)], .double(.infinity), .double(.infinity)),
  ]

  @Test(arguments: rows) func computesSumsAndAverages(values: [Value], sum: Value, average: Value) throws {
    let database = try QueryDatabase()
    try database.commit([.set("other/x", ("a", 1))])
    try database.commit(values.enumerated().map { .set("c/\($0)", ("a", $1)) })
    let results = try database.aggregate(
      Query(collectionID: "c"), [.sum(field("a")), .average(field("a")), .count(upTo: nil)])
    #expect(results == [sum, average, .integer(Int64(values.count))])
  }

  @Test func documentsNeedEveryAggregatedField() throws {
    let database = try QueryDatabase()
    let version = try database.commit([
      .set("c/1", ("a", 1), ("b", 10)), .set("c/2", ("a", 2)), .set("c/3", ("b", 30)),
      .set("c/4", ("a", "t"), ("b", 40)),
    ])
    let query = Query(collectionID: "c")
    for version in [nil, version] {
      #expect(try database.aggregate(query, [.count(upTo: nil)], at: version) == [4])
      #expect(try database.aggregate(query, [.count(upTo: nil), .sum(field("a"))], at: version) == [3, 3])
      #expect(
        try database.aggregate(query, [.sum(field("a")), .average(field("b")), .count(upTo: nil)], at: version)
          == [1, 25.0, 2])
      #expect(try database.aggregate(query, [.sum(field("nowhere")), .count(upTo: nil)], at: version) == [0, 0])
    }
  }

  @Test func countsStopAtTheirLimits() throws {
    let database = try QueryDatabase()
    try database.commit((0..<7).map { .set("c/\($0)", ("a", .integer(Int64($0)))) })
    var query = Query(collectionID: "c")
    #expect(try database.aggregate(query, [.count(upTo: 3)]) == [3])
    #expect(try database.aggregate(query, [.count(upTo: 9)]) == [7])
    #expect(try database.aggregate(query, [.count(upTo: 2), .count(upTo: 5)]) == [2, 5])
    #expect(try database.aggregate(query, [.count(upTo: 2), .count(upTo: nil), .sum(field("a"))]) == [2, 7, 21])
    query.offset = 2
    query.limit = 4
    // A limit selects documents in the order of the aggregated field, which here is that of the names.
    #expect(try database.aggregate(query, [.count(upTo: nil), .sum(field("a"))]) == [4, 14])
    query.filter = .field(field("a"), .greaterThan, 4)
    #expect(try database.aggregate(query, [.count(upTo: nil)]) == [0])
    query.limit = 0
    #expect(try database.aggregate(query, [.count(upTo: nil), .average(field("a"))]) == [0, .null])
  }

  /// A limit selects documents in the order of the aggregated fields, unless the query orders by name before them.
  @Test func limitFollowsTheOrderOfTheAggregatedField() throws {
    let database = try QueryDatabase()
    try database.commit((0..<5).map { .set("c/\($0)", ("a", .integer(Int64(9 - $0)))) })
    var query = Query(collectionID: "c")
    query.limit = 2
    #expect(try database.aggregate(query, [.sum(field("a"))]) == [11])
    query.orders = [Order(field("__name__"))]
    #expect(try database.aggregate(query, [.sum(field("a"))]) == [17])
  }
}
