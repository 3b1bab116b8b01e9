import DocumentModel
import QueryEngine
import Testing
import TestSupport

/// The completion of queries, and the errors of invalid ones.
@Suite struct ResolvedQueryTests {
  private static let database = DatabaseID(project: "p").unsafelyUnwrapped
  private static let name = field("__name__")

  private static func query(_ filter: QueryFilter? = nil, _ orders: Order...) -> Query {
    var query = Query(collectionID: "c")
    query.filter = filter
    query.orders = orders
    return query
  }

  private static func down(_ path: String) -> Order { Order(field(path), isDescending: true) }
  private static func up(_ path: String) -> Order { Order(field(path)) }
  private static func is1(_ path: String, _ op: FieldOperator = .equal) -> QueryFilter { .field(field(path), op, 1) }
  private static func named(_ op: FieldOperator, _ id: String = "x") -> QueryFilter {
    .field(name, op, .reference("\(database.documentsRoot)/c/\(id)"))
  }

  private static let completions: [(query: Query, orders: String)] = [
    (query(), "__name__"),
    (query(nil, down("a")), "a descending, __name__ descending"),
    (query(nil, down("a"), up("b")), "a descending, b, __name__"),
    (query(nil, down("__name__")), "__name__ descending"),
    (query(nil, down("a"), up("__name__")), "a descending, __name__"),
    (query(is1("a")), "__name__"),
    (query(is1("a", .greaterThan)), "a, __name__"),
    (query(is1("a", .greaterThan), up("b")), "b, a, __name__"),
    (query(is1("a", .greaterThan), down("b")), "b descending, a descending, __name__ descending"),
    (query(.and([is1("b", .lessThan), is1("a", .greaterThan), is1("b", .greaterThan)])), "a, b, __name__"),
    (query(.or([is1("a", .greaterThan), is1("b")])), "a, __name__"),
    (query(is1("a", .notEqual)), "a, __name__"),
    (query(.field(field("a"), .notIn, [1])), "a, __name__"),
    (query(.field(field("a"), .in, [1])), "__name__"),
    (query(.field(field("a"), .arrayContainsAny, [1])), "__name__"),
    (query(is1("a", .arrayContains)), "__name__"),
    (query(.unary(field("a"), .isNotNull)), "a, __name__"),
    (query(.unary(field("a"), .isNotNaN)), "a, __name__"),
    (query(.unary(field("a"), .isNull)), "__name__"),
    (query(.unary(field("a"), .isNaN)), "__name__"),
    (query(named(.greaterThan)), "__name__"),
    (query(.and([named(.greaterThan), is1("a", .lessThan)])), "a, __name__"),
    (query(.and([named(.equal), named(.lessThan), is1("a", .lessThan)])), "a, __name__"),
  ]

  @Test(arguments: completions) func completesTheOrder(query: Query, orders: String) throws {
    let resolved = try ResolvedQuery(query, in: Self.database)
    #expect(resolved.orders.map(\.text).joined(separator: ", ") == orders)
  }

  private static let refusals: [(query: Query, text: String)] = [
    (changed { $0.limit = -1 }, "limit is negative"),
    (changed { $0.offset = -1 }, "offset is negative"),
    (query(is1("a", .in)), "'IN' requires an ArrayValue."),
    (query(is1("a", .notIn)), "'NOT_IN' requires an ArrayValue."),
    (query(.field(field("a"), .in, [])), "'IN' requires an non-empty ArrayValue."),
    (query(.field(field("a"), .arrayContainsAny, [])), "'ARRAY_CONTAINS_ANY' requires an non-empty ArrayValue."),
    (query(.field(field("a"), .in, list(31))), "'IN' supports up to 30 comparison values."),
    (
      query(.field(field("a"), .arrayContainsAny, list(31))),
      "'ARRAY_CONTAINS_ANY' supports up to 30 comparison values."
    ),
    (query(.field(field("a"), .notIn, list(11))), "'NOT_IN' supports up to 10 comparison values."),
    (
      query(.and([is1("a", .notEqual), is1("a", .notEqual)])),
      "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."
    ),
    (
      query(.and([.unary(field("a"), .isNotNull), .field(field("b"), .notIn, [1])])),
      "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query."
    ),
    (
      query(.and([.field(field("a"), .notIn, [1]), .field(field("b"), .in, [1])])),
      "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."
    ),
    (
      query(.or([.field(field("a"), .notIn, [1]), is1("b")])),
      "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."
    ),
    (
      query(.and([is1("a", .arrayContains), is1("b", .arrayContains)])),
      "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction."
    ),
    (
      query(.and([.field(field("a"), .in, list(6)), .field(field("b"), .in, list(6))])),
      "Too many disjunctions after normalization. Result had 36 disjunctions which is more than the maximum of 30"
    ),
    (
      query(.or((0..<31).map { is1("f\($0)") })),
      "Too many disjunctions after normalization. Result had 31 disjunctions which is more than the maximum of 30"
    ),
    (
      query(.and((0..<11).map { is1("f\($0)", .lessThan) })),
      "The query has inequalities on 11 fields; at most 10 are allowed."
    ),
    (query(.and((0..<101).map { is1("f\($0)") })), "The query has 101 filters and orders; at most 100 are allowed."),
    (
      query(.and([named(.equal), is1("a", .lessThan)])),
      "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."
    ),
    (query(nil, up("__name__"), up("a")), "order by clause cannot contain more fields after the key"),
    (query(is1("a", .lessThan), up("__name__")), "order by clause cannot contain more fields after the key"),
    (changed { $0.start = QueryBound([1, 2], isBefore: true) }, "Cursor has too many values."),
    (query(.field(name, .equal, "x")), "__key__ filter value must be a Key"),
    (query(.field(name, .in, ["x"])), "__key__ filter value must be a Key"),
    (
      changed { $0.end = QueryBound([1], isBefore: true) },
      "A cursor's value for __name__ must be a reference to a document."
    ),
    (
      query(.field(name, .equal, .reference("projects/q/databases/(default)/documents/c/x"))),
      "The reference projects/q/databases/(default)/documents/c/x is in another database than the query."
    ),
  ]

  @Test(arguments: refusals) func refusesInvalidQueries(query: Query, text: String) {
    let error = #expect(throws: QueryError.self) { try ResolvedQuery(query, in: Self.database) }
    #expect(error?.description == text)
  }

  /// Each query must be rejected quickly, without work proportional to the square of its size. The queries are not
  /// arguments of the test, because those would be printed.
  @Test func hugeQueriesAreRefusedQuickly() {
    let count = 50_000
    let filters: [QueryFilter] = [
      .and((0..<count).map { Self.is1("f\($0)") }), .and((0..<count).map { Self.is1("f\($0)", .lessThan) }),
      .and((0..<count).map { _ in Self.is1("a") }), .or((0..<count).map { _ in Self.is1("a") }),
      .and([.or((0..<count / 2).map { Self.is1("f\($0)") }), .and((0..<count / 2).map { Self.is1("f\($0)") })]),
    ]
    let orders = (0..<count).map { Self.up("f\($0)") }
    var queries = filters.map { Self.query($0) }
    queries.append(Self.changed { $0.orders = orders })
    let time = threadTime {
      for query in queries {
        let error = #expect(throws: QueryError.self) { try ResolvedQuery(query, in: Self.database) }
        #expect(error == .tooComplex(count))
      }
    }
    #expect(time < .seconds(20))
  }

  /// The largest valid queries next to the invalid ones above.
  private static let legal: [Query] = [
    query(.field(field("a"), .in, list(30))),
    query(.field(field("a"), .notIn, list(10))),
    query(.or((0..<30).map { is1("f\($0)") })),
    query(.and((0..<10).map { is1("f\($0)", .lessThan) })),
    query(.and((0..<100).map { is1("f\($0)") })),
    query(.and([.field(field("a"), .in, list(5)), .field(field("b"), .in, list(6))])),
    query(.or([is1("a", .arrayContains), is1("b", .arrayContains)])),
    // Repeated conditions count once.
    query(.and([.field(field("a"), .in, list(6)), .field(field("b"), .in, [1, 1, 2, 2, 3, 3])])),
    query(.and([.field(field("a"), .in, list(8)), .field(field("a"), .in, list(4))])),
    query(.or((0..<40).map { is1("f\($0 % 30)") })),
    query(.and([is1("a", .arrayContains), is1("a", .arrayContains)])),
    changed { $0.start = QueryBound([], isBefore: true) },
    changed { $0.limit = 0 },
  ]

  @Test(arguments: legal) func acceptsValidQueries(query: Query) {
    #expect(throws: Never.self) { try ResolvedQuery(query, in: Self.database) }
  }

  private static func list(_ count: Int) -> Value { .array((0..<count).map { .integer(Int64($0)) }) }

  private static func changed(_ change: (inout Query) -> Void) -> Query {
    var query = query()
    change(&query)
    return query
  }
}
