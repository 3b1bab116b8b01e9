import DocumentModel

/// The query that the options of `hearth query` describe.
struct QueryOptions {
  var query: Query
  var aggregations: [Aggregation]
  /// The time as of which the data are read; `nil` for now.
  var readTime: Timestamp?
  var explain: ExplainMode?

  /// Reads the path and the options.
  /// - Throws: ``CommandFailure`` if they do not describe a query; the message shows a correct form.
  init(_ arguments: Arguments, _ database: DatabaseID) throws {
    let collection = try Self.collection(arguments)
    query = Query(parent: collection.parent, collectionID: collection.id, includesDescendants: arguments.has("group"))
    let filters = try arguments.values("where").map { try ConditionText.filter($0, in: collection, of: database) }
    if !filters.isEmpty { query.filter = filters.count == 1 ? filters[0] : .and(filters) }
    func values(_ option: String) -> [ValueText] {
      arguments.values(option).map { ValueText($0, option: option, in: collection, of: database) }
    }
    for text in values("order") { query.orders += try Self.orders(text) }
    let fields = try values("select").flatMap(Self.fields)
    if !fields.isEmpty { query.projection = FieldMask(fields) }
    query.limit = try arguments.integer("limit", in: 0...Int(Int32.max))
    query.offset = try arguments.integer("offset", in: 0...Int(Int32.max)) ?? 0
    try arguments.exclude("start-at", "start-after")
    try arguments.exclude("end-at", "end-before")
    for option in ["start-at", "start-after", "end-at", "end-before"] {
      guard let text = values(option).last else { continue }
      let bound = QueryBound(try Self.bound(text, query), isBefore: option == "start-at" || option == "end-before")
      if option.hasPrefix("start") { query.start = bound } else { query.end = bound }
    }
    aggregations = arguments.has("count") ? [Aggregation(.count(upTo: nil), alias: "count")] : []
    for field in try values("sum").flatMap(Self.fields) {
      aggregations.append(Aggregation(.sum(field), alias: "sum(\(field.text))"))
    }
    for field in try values("avg").flatMap(Self.fields) {
      aggregations.append(Aggregation(.average(field), alias: "avg(\(field.text))"))
    }
    if !aggregations.isEmpty, query.projection != nil {
      throw CommandFailure.usage("'--select' cannot be used with --count, --sum or --avg; remove it")
    }
    readTime = try Self.readTime(arguments)
    explain = arguments.has("analyze") ? .analyze : arguments.has("explain") ? .plan : nil
  }

  /// Returns the time of `--at`, or `nil` if it is not given.
  /// - Throws: ``CommandFailure`` if it is not a time.
  static func readTime(_ arguments: Arguments) throws -> Timestamp? {
    guard let text = arguments.value("at") else { return nil }
    guard let time = ValueText.time(text) else {
      throw CommandFailure.usage("'--at \(text)' must be a time such as 2025-03-01T14:30:00Z")
    }
    return time
  }

  /// Returns the fields to show, in the order of `--select`; empty for all.
  /// - Throws: ``CommandFailure`` if a field path is malformed.
  static func columns(_ arguments: Arguments) throws -> [FieldPath] {
    try arguments.values("select").flatMap {
      try fields(ValueText($0, option: "select", in: .root, of: DatabaseChoice.database(arguments)))
    }
  }

  private static func collection(_ arguments: Arguments) throws -> ResourcePath {
    let text = arguments.operands[0]
    let path = try DatabaseChoice.path(text)
    if path.isRoot {
      throw CommandFailure.usage(
        "give the path of a collection, such as users; `hearth get` lists the collections")
    }
    if path.segments.contains(where: { $0.elementsEqual("*".utf8) }) {
      throw CommandFailure.usage(
        "'\(text)': a path cannot have wildcards; '\(path.id)' with --group queries all collections with that id")
    }
    guard path.isCollection else {
      throw CommandFailure.usage(
        "'\(path)' is a document; show it with `hearth get \(path)`, or name a collection such as \(path.parent)")
    }
    return path
  }

  private static func fields(_ text: ValueText) throws -> [FieldPath] {
    var text = text
    var fields = [try text.fieldPath()]
    while text.take(symbol: ",") { fields.append(try text.fieldPath()) }
    try text.expectEnd(or: "','")
    return fields
  }

  private static func orders(_ text: ValueText) throws -> [Order] {
    var text = text
    var orders: [Order] = []
    repeat {
      let path = try text.fieldPath()
      var isDescending = false
      if text.take(symbol: ":") {
        isDescending = text.take(word: "desc") || text.take(word: "descending")
        guard isDescending || text.take(word: "asc") || text.take(word: "ascending") else {
          throw text.failure("expected 'asc' or 'desc' after ':'")
        }
      }
      orders.append(Order(path, isDescending: isDescending))
    } while text.take(symbol: ",")
    try text.expectEnd(or: "':', ','")
    return orders
  }

  /// Parses the values of a bound, for the first fields of the order. For an order by name, the values are IDs.
  private static func bound(_ text: ValueText, _ query: Query) throws -> [Value] {
    var text = text
    var values: [Value] = []
    repeat {
      let isOfName =
        values.count < query.orders.count
        ? query.orders[values.count].path.isDocumentName : query.orders.isEmpty && query.filter?.comparesFields != true
      values.append(isOfName ? try text.name() : try text.value())
    } while text.take(symbol: ",")
    try text.expectEnd(or: "','")
    return values
  }
}

extension QueryFilter {
  /// Whether a field is compared in a way that adds it to the order of the results.
  fileprivate var comparesFields: Bool {
    switch self {
    case .and(let filters), .or(let filters): return filters.contains(where: \.comparesFields)
    case .unary(let path, let op): return !path.isDocumentName && (op == .isNotNaN || op == .isNotNull)
    case .field(let path, let op, _):
      switch op {
      case .equal, .in, .arrayContains, .arrayContainsAny: return false
      default: return !path.isDocumentName
      }
    }
  }
}
