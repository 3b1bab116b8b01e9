import DocumentModel
import DocumentStore
import QueryEngine
import Testing
import TestSupport

/// The indexes that production requires for a query, and the declared indexes that satisfy it.
@Suite struct IndexNeedsTests {
  /// The most specific declaration applies, as it does for the entries that commits write.
  @Test func mostSpecificDeclarationApplies() {
    let marks: [FieldIndexing.Entries] = [
      .init(.collection, .ascending), .init(.collection, .descending), .init(.collection, .contains),
      .init(.collectionGroup, .ascending), .init(.collectionGroup, .descending),
    ]
    let configuration = IndexConfiguration(fields: [
      FieldIndexing(collectionID: "c", path: field("m.k"), entries: [marks[0]]),
      FieldIndexing(collectionID: "c", path: field("m"), entries: [marks[1]]),
      FieldIndexing(collectionID: FieldIndexing.allCollections, path: FieldIndexing.allFields, entries: [marks[2]]),
      FieldIndexing(collectionID: "c", path: FieldIndexing.allFields, entries: [marks[3]]),
      FieldIndexing(collectionID: "d", path: field("m"), entries: [marks[4]]),
    ])
    let rows = [
      ("m.k", "c", 0), ("m.k.x", "c", 0), ("m", "c", 1), ("m.x", "c", 1), ("x", "c", 3), ("m", "d", 4), ("m.k", "d", 4),
      ("x", "d", 2), ("m.k", "e", 2),
    ]
    for (path, collection, mark) in rows {
      #expect(configuration.entries(of: field(path), in: collection) == [marks[mark]], "\(collection).\(path)")
    }
    #expect(IndexConfiguration().entries(of: field("m"), in: "c") == FieldIndexing.automatic)
    let other = IndexConfiguration(fields: [FieldIndexing(collectionID: "c", path: field("m"), entries: [])])
    #expect(other.entries(of: field("x"), in: "c") == FieldIndexing.automatic)
  }

  private static let database = DatabaseID(project: "p").unsafelyUnwrapped
  private static let asc = IndexDefinition.Mode.ascending
  private static let desc = IndexDefinition.Mode.descending

  private static func on(_ path: String, _ op: FieldOperator = .equal, _ value: Value = 1) -> QueryFilter {
    .field(field(path), op, value)
  }
  private static func up(_ path: String) -> Order { Order(field(path)) }
  private static func down(_ path: String) -> Order { Order(field(path), isDescending: true) }
  private static func named(_ op: FieldOperator) -> QueryFilter {
    .field(field("__name__"), op, .reference("\(database.documentsRoot)/c/x"))
  }

  /// Makes an index of `c` from texts: `a` is ascending, `-a` descending, `a[]` array-contains, `a<3>` a vector.
  private static func index(_ fields: String..., group: Bool = false) -> IndexDefinition {
    IndexDefinition(
      collectionID: "c", scope: group ? .collectionGroup : .collection,
      fields: fields.map { text in
        if text.hasPrefix("-") { return IndexDefinition.Field(field(String(text.dropFirst())), desc) }
        if text.hasSuffix("[]") { return IndexDefinition.Field(field(String(text.dropLast(2))), .contains) }
        if text.hasSuffix("<3>") {
          return IndexDefinition.Field(field(String(text.dropLast(3))), .vector(dimension: 3))
        }
        return IndexDefinition.Field(field(text), asc)
      })
  }

  private static func only(_ path: FieldPath, in id: String = "c", _ entries: FieldIndexing.Entries...) -> FieldIndexing
  {
    FieldIndexing(collectionID: id, path: path, entries: Set(entries))
  }

  struct Row: Sendable, CustomTestStringConvertible {
    var filter: QueryFilter?
    var orders: [Order] = []
    var isGroup = false
    var collectionID: String? = "c"
    var aggregated: [String] = []
    var nearest: String?
    var declared: [IndexDefinition] = []
    var fields: [FieldIndexing] = []
    var missing: [String] = []

    var testDescription: String {
      "\(filter.map { "\($0)" } ?? "all") by \(orders.map(\.text)) \(isGroup ? "group" : "") with \(declared) \(fields)"
    }

    func check() throws {
      var query = Query(collectionID: collectionID, includesDescendants: isGroup)
      query.filter = filter
      query.orders = orders
      if let nearest { query.findNearest = FindNearest(field(nearest), near: [1, 2, 3], by: .cosine, limit: 1) }
      let aggregated = aggregated.map { field($0) }
      let resolved = try ResolvedQuery(query, in: database, aggregated: aggregated)
      let needs = IndexNeeds(resolved, aggregated: aggregated)
      let configuration = IndexConfiguration(indexes: declared, fields: fields)
      let missing = needs.missing(in: configuration)
      #expect(missing.map(\.description) == self.missing)
      // The missing indexes must be enough.
      var completed = configuration
      for index in missing {
        switch index {
        case .composite(let definition): completed.indexes.append(definition)
        case .field(let wanted):
          var entries = completed.entries(of: wanted.path, in: wanted.collectionID)
          entries.formUnion(wanted.entries)
          completed.fields.removeAll { $0.path == wanted.path && $0.collectionID == wanted.collectionID }
          completed.fields.append(
            FieldIndexing(collectionID: wanted.collectionID, path: wanted.path, entries: entries))
        }
      }
      #expect(needs.missing(in: completed).isEmpty, "\(missing) are not enough")
    }
  }

  @Test(arguments: [
    Row(),
    Row(filter: on("a")),
    Row(filter: .and([on("a"), on("b"), .unary(field("n"), .isNull)])),
    Row(filter: on("a", .in, [1, 2])),
    Row(filter: .or([on("a"), on("b")])),
    Row(filter: on("t", .arrayContains)),
    Row(filter: .and([on("t", .arrayContainsAny, [1, 2]), on("a")])),
    Row(filter: on("a", .greaterThan)),
    Row(filter: .and([on("a", .greaterThan), on("a", .lessThan, 5)]), orders: [down("a")]),
    Row(filter: on("a", .notEqual)),
    Row(filter: .unary(field("a"), .isNotNull)),
    Row(filter: on("a", .notIn, [1]), orders: [up("a")]),
    Row(orders: [up("a")]), Row(orders: [down("a")]), Row(orders: [down("a"), down("__name__")]),
    Row(orders: [up("m.a")]),
    Row(filter: on("a"), orders: [up("a")]), Row(filter: on("a"), orders: [down("a")]),
    Row(filter: on("a", .in, [1, 2]), orders: [up("a")]),
    Row(filter: named(.greaterThan)), Row(filter: named(.equal)), Row(filter: .and([named(.equal), on("a")])),
    Row(filter: .and([named(.greaterThan), on("a")])),
    // Each alternative alone needs only single-field entries.
    Row(filter: .or([on("a"), on("b", .arrayContains), .and([on("c"), on("d")])])),
    // Queries over all collection IDs can select only by name.
    Row(isGroup: true, collectionID: nil), Row(orders: [down("__name__")], collectionID: nil),
    Row(isGroup: true),
    Row(filter: on("a"), aggregated: ["a"]), Row(aggregated: ["a"]),
    Row(filter: on("a", .greaterThan), aggregated: ["a"]),
  ])
  func automaticEntriesAreEnough(row: Row) throws { try row.check() }

  @Test(arguments: [
    Row(filter: on("a"), orders: [up("b")], missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(filter: on("a"), orders: [down("b")], missing: ["collection c(a ASC, b DESC, __name__ DESC)"]),
    Row(filter: .and([on("b"), on("a", .lessThan)]), missing: ["collection c(b ASC, a ASC, __name__ ASC)"]),
    Row(filter: .and([on("b"), on("a", .notEqual)]), missing: ["collection c(b ASC, a ASC, __name__ ASC)"]),
    Row(
      filter: .and([on("z"), on("y"), on("t", .arrayContains)]), orders: [down("b")],
      missing: ["collection c(t CONTAINS, y ASC, z ASC, b DESC, __name__ DESC)"]),
    Row(orders: [up("a"), down("b")], missing: ["collection c(a ASC, b DESC, __name__ DESC)"]),
    Row(orders: [up("a"), down("__name__")], missing: ["collection c(a ASC, __name__ DESC)"]),
    Row(orders: [down("__name__")], missing: ["collection c(__name__ DESC)"]),
    Row(orders: [down("__name__")], isGroup: true, missing: ["group c(__name__ DESC)"]),
    Row(
      filter: on("t", .arrayContains), orders: [down("__name__")], missing: ["collection c(t CONTAINS, __name__ DESC)"]),
    Row(
      filter: .and([on("a", .greaterThan), on("b", .lessThan)]), missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: .and([on("a", .greaterThan), on("b", .lessThan)]), orders: [down("b")],
      missing: ["collection c(b DESC, a DESC, __name__ DESC)"]),
    // A field in an equality leaves the order. The name keeps its direction.
    Row(
      filter: on("a", .in, [1]), orders: [down("b"), up("a")], missing: ["collection c(a ASC, b DESC, __name__ ASC)"]),
    Row(
      filter: .or([on("a"), on("b")]), orders: [up("n")],
      missing: ["collection c(a ASC, n ASC, __name__ ASC)", "collection c(b ASC, n ASC, __name__ ASC)"]),
    Row(filter: .or([on("a"), on("b", .greaterThan)]), missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(filter: on("a", .in, [1, 2]), orders: [up("n")], missing: ["collection c(a ASC, n ASC, __name__ ASC)"]),
    Row(
      filter: .and([on("t", .arrayContains), on("t")]), orders: [up("n")],
      missing: [
        "collection c(t CONTAINS, n ASC, __name__ ASC)", "collection c(t ASC, n ASC, __name__ ASC)",
      ]),
    Row(filter: on("a"), aggregated: ["n"], missing: ["collection c(a ASC, n ASC, __name__ ASC)"]),
    Row(aggregated: ["n", "m"], missing: ["collection c(m ASC, n ASC, __name__ ASC)"]),
    Row(orders: [down("a")], aggregated: ["n"], missing: ["collection c(a DESC, n DESC, __name__ DESC)"]),
    Row(filter: on("a"), isGroup: true, missing: ["group c.a ASC"]),
    Row(
      filter: .and([on("a"), on("t", .arrayContains)]), isGroup: true, missing: ["group c.t CONTAINS", "group c.a ASC"]),
    Row(orders: [down("a")], isGroup: true, missing: ["group c.a DESC"]),
    Row(filter: on("a", .greaterThan), isGroup: true, missing: ["group c.a ASC"]),
    Row(filter: on("a"), orders: [up("b")], isGroup: true, missing: ["group c(a ASC, b ASC, __name__ ASC)"]),
    Row(nearest: "v", missing: ["collection c(__name__ ASC, v VECTOR<3>)"]),
    Row(filter: on("a"), nearest: "v", missing: ["collection c(a ASC, __name__ ASC, v VECTOR<3>)"]),
    Row(isGroup: true, nearest: "v", missing: ["group c(__name__ ASC, v VECTOR<3>)"]),
  ])
  func queriesRequireIndexes(row: Row) throws { try row.check() }

  @Test(arguments: [
    Row(filter: on("a"), orders: [up("b")], declared: [index("a", "b")]),
    Row(filter: on("a"), orders: [up("b")], declared: [index("-a", "b")]),
    Row(filter: on("a"), orders: [up("b")], declared: [index("a", "b", "__name__")]),
    Row(filter: .and([on("x"), on("y")]), orders: [up("b")], declared: [index("y", "x", "b")]),
    // Indexes that end in the same fields are merged.
    Row(filter: .and([on("x"), on("y")]), orders: [up("b")], declared: [index("x", "b"), index("y", "b")]),
    Row(
      filter: .and([on("x"), on("y"), on("z")]), orders: [down("b")],
      declared: [index("x", "y", "-b"), index("z", "-b")]),
    Row(
      filter: .and([on("x"), on("t", .arrayContains)]), orders: [up("b")],
      declared: [index("t[]", "b"), index("x", "b")]),
    Row(filter: on("t", .arrayContains), orders: [up("b")], declared: [index("t[]", "b")]),
    Row(orders: [down("__name__")], declared: [index("-__name__")]),
    Row(orders: [up("a"), down("__name__")], declared: [index("a", "-__name__")]),
    Row(filter: on("a", .in, [1, 2]), orders: [up("n")], declared: [index("a", "n")]),
    Row(nearest: "v", declared: [index("v<3>")]),
    Row(filter: on("a"), nearest: "v", declared: [index("a", "v<3>")]),
    Row(filter: on("a"), nearest: "v", declared: [index("a", "__name__", "v<3>")]),
    Row(filter: on("a"), orders: [up("b")], isGroup: true, declared: [index("a", "b", group: true)]),
    // An index of several fields can replace the entries of an exempt field.
    Row(filter: .and([on("a"), on("b")]), declared: [index("a", "b")], fields: [only(field("a"))]),
  ])
  func declaredIndexesSatisfyQueries(row: Row) throws { try row.check() }

  @Test(arguments: [
    // Neither the last fields nor the names are read backwards.
    Row(
      filter: on("a"), orders: [down("b")], declared: [index("a", "b")],
      missing: ["collection c(a ASC, b DESC, __name__ DESC)"]),
    Row(
      filter: on("a"), orders: [up("b")], declared: [index("a", "b", "-__name__")],
      missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    // With a field that the query does not have, the index would lack documents.
    Row(
      filter: on("a"), orders: [up("b")], declared: [index("a", "x", "b")],
      missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: on("a"), orders: [up("b")], declared: [index("a", "b", "x")],
      missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: .and([on("x"), on("y")]), orders: [up("b")], declared: [index("x", "b"), index("y", "-b")],
      missing: ["collection c(x ASC, y ASC, b ASC, __name__ ASC)"]),
    // Each field in an equality must be in some index, even if an index gives the order.
    Row(
      filter: .and([on("x"), on("y")]), orders: [up("b")], declared: [index("x", "b")],
      missing: ["collection c(x ASC, y ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: on("t", .arrayContains), orders: [up("b")], declared: [index("t", "b")],
      missing: ["collection c(t CONTAINS, b ASC, __name__ ASC)"]),
    Row(
      filter: on("a"), orders: [up("b")], declared: [index("a", "b", group: true)],
      missing: ["collection c(a ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: on("a"), orders: [up("b")], isGroup: true, declared: [index("a", "b")],
      missing: ["group c(a ASC, b ASC, __name__ ASC)"]),
    Row(
      filter: .and([on("a"), on("b")]), nearest: "v", declared: [index("a", "v<3>"), index("b", "v<3>")],
      missing: ["collection c(a ASC, b ASC, __name__ ASC, v VECTOR<3>)"]),
    Row(nearest: "w", declared: [index("v<3>")], missing: ["collection c(__name__ ASC, w VECTOR<3>)"]),
    Row(
      filter: .or([on("a"), on("b")]), orders: [up("n")], declared: [index("a", "n")],
      missing: ["collection c(b ASC, n ASC, __name__ ASC)"]),
  ])
  func otherIndexesDoNotSatisfyQueries(row: Row) throws { try row.check() }

  @Test(arguments: [
    Row(filter: on("a"), fields: [only(field("a"))], missing: ["collection c.a ASC"]),
    Row(orders: [down("a")], fields: [only(field("a"), .init(.collection, asc))], missing: ["collection c.a DESC"]),
    Row(filter: on("a", .arrayContains), fields: [only(field("a"))], missing: ["collection c.a CONTAINS"]),
    Row(filter: .and([on("a"), on("b")]), fields: [only(field("a"))], missing: ["collection c.a ASC"]),
    // The exemption of a map applies to its members, unless these have their own declaration.
    Row(orders: [up("m.a")], fields: [only(field("m"))], missing: ["collection c.m.a ASC"]),
    Row(orders: [up("m.a")], fields: [only(field("m")), only(field("m.a"), .init(.collection, asc))]),
    Row(orders: [up("a")], fields: [only(FieldIndexing.allFields)], missing: ["collection c.a ASC"]),
    Row(
      orders: [up("a")], fields: [only(FieldIndexing.allFields, in: FieldIndexing.allCollections)],
      missing: ["collection c.a ASC"]),
    Row(
      orders: [up("a")],
      fields: [
        only(FieldIndexing.allFields, in: FieldIndexing.allCollections),
        only(FieldIndexing.allFields, .init(.collection, asc)),
      ]),
    Row(orders: [up("a")], fields: [only(FieldIndexing.allFields), only(field("a"), .init(.collection, asc))]),
    Row(orders: [up("a")], fields: [only(field("a"), in: "other")]),
    Row(filter: on("a"), isGroup: true, fields: [only(field("a"), .init(.collectionGroup, asc))]),
    Row(
      orders: [down("a")], isGroup: true, fields: [only(field("a"), .init(.collectionGroup, asc))],
      missing: ["group c.a DESC"]),
    // Indexes of several fields do not depend on the entries of single fields.
    Row(filter: on("a"), orders: [up("b")], declared: [index("a", "b")], fields: [only(field("a")), only(field("b"))]),
  ])
  func exemptFieldsLackEntries(row: Row) throws { try row.check() }

  @Test func shapesDifferIfNeededIndexesMayDiffer() throws {
    var queries: [Query] = []
    func add(_ change: (inout Query) -> Void) {
      var query = Query(collectionID: "c")
      change(&query)
      queries.append(query)
    }
    add { _ in }
    add { $0.collectionID = "d" }
    add { $0.includesDescendants = true }
    for filter in [
      Self.on("a"), Self.on("a", .greaterThan), Self.on("b"), .unary(field("a"), .isNull), Self.on("a.b"),
      .and([Self.on("a"), Self.on("b")]), .or([Self.on("a"), Self.on("b")]),
      .and([.and([Self.on("a")]), Self.on("b")]),
    ] {
      add { $0.filter = filter }
    }
    for orders in [[Self.up("a")], [Self.down("a")], [Self.up("a"), Self.up("b")], [Self.up("b"), Self.up("a")]] {
      add { $0.orders = orders }
    }
    add { $0.findNearest = FindNearest(field("v"), near: [1], by: .cosine, limit: 1) }
    add { $0.findNearest = FindNearest(field("v"), near: [1, 2], by: .cosine, limit: 1) }
    var shapes = Set(queries.map { QueryShape($0, in: Self.database) })
    shapes.insert(QueryShape(queries[0], aggregated: [field("n")], in: Self.database))
    shapes.insert(QueryShape(queries[0], in: try #require(DatabaseID(project: "q"))))
    #expect(shapes.count == queries.count + 2)
    // Values, limits, cursors and parents are not part of the shape.
    var other = queries[3]
    other.filter = Self.on("a", .equal, 7)
    other.limit = 9
    other.parent = document("x/y").path
    other.start = QueryBound([1], isBefore: true)
    #expect(QueryShape(other, in: Self.database) == QueryShape(queries[3], in: Self.database))
  }
}
