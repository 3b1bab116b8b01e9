/// A ``CollectionReference`` or a ``Query``, to which you can add conditions, orders and limits. Each method
/// returns a new query.
///
///     let page = try await hearth.collection("users")
///       .where("age", .greaterThanOrEqual, 18).order(by: "age").limit(to: 20)
///       .get(as: Person.self)
///     let next = try await hearth.collection("users")
///       .where("age", .greaterThanOrEqual, 18).order(by: "age").limit(to: 20).start(after: page.documents.last!)
///       .get(as: Person.self)
public protocol Queryable: Sendable {
  /// The query.
  var query: Query { get }
}

extension Queryable {
  /// Keeps only documents that match a filter, and those of earlier calls.
  public func `where`(_ filter: Filter) -> Query { changed { $0.filters.append(filter) } }

  /// Keeps only documents whose field matches a comparison, and the filters of earlier calls.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: Value) -> Query {
    self.where(.field(path, comparison, value))
  }

  /// Keeps only documents whose field matches a comparison, and the filters of earlier calls.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: some ValueConvertible) -> Query {
    self.where(.field(path, comparison, value.documentValue))
  }

  /// Orders by a field. Fields of earlier calls take precedence. Keeps only documents that have the field.
  public func order(by path: FieldPath, descending: Bool = false) -> Query {
    changed { $0.orders.append(Query.Order(path: path, isDescending: descending)) }
  }

  /// Keeps at most the first `count` documents.
  public func limit(to count: Int) -> Query { changed { ($0.limit, $0.isFromEnd) = (count, false) } }

  /// Keeps at most the last `count` documents, in the same order.
  public func limit(toLast count: Int) -> Query { changed { ($0.limit, $0.isFromEnd) = (count, true) } }

  /// Skips the first `count` documents. The server still reads them. ``start(after:)`` with a document avoids the cost.
  public func offset(_ count: Int) -> Query { changed { $0.offset = count } }

  /// Returns only these fields of the documents. An empty array returns only their names.
  public func select(_ paths: [FieldPath]) -> Query { changed { $0.selection = paths } }

  // MARK: - Bounds

  /// Starts at these values: one for each field of the order, or for the first few.
  public func start(at values: [Value]) -> Query { changed { $0.start = Query.Bound(values: values, isBefore: true) } }

  /// Starts at these values: one for each field of the order, or for the first few.
  public func start(at values: [(any ValueConvertible)?]) -> Query { start(at: values.values) }

  /// Starts after these values.
  public func start(after values: [Value]) -> Query {
    changed { $0.start = Query.Bound(values: values, isBefore: false) }
  }

  /// Starts after these values.
  public func start(after values: [(any ValueConvertible)?]) -> Query { start(after: values.values) }

  /// Ends at these values.
  public func end(at values: [Value]) -> Query { changed { $0.end = Query.Bound(values: values, isBefore: false) } }

  /// Ends at these values.
  public func end(at values: [(any ValueConvertible)?]) -> Query { end(at: values.values) }

  /// Ends before these values.
  public func end(before values: [Value]) -> Query { changed { $0.end = Query.Bound(values: values, isBefore: true) } }

  /// Ends before these values.
  public func end(before values: [(any ValueConvertible)?]) -> Query { end(before: values.values) }

  /// Starts at this document. Add conditions and orders before this call.
  public func start<T>(at document: DocumentSnapshot<T>) -> Query { bounded { $0.start(at: $1) }(document) }

  /// Starts after this document, for the next page. Add conditions and orders before this call.
  public func start<T>(after document: DocumentSnapshot<T>) -> Query { bounded { $0.start(after: $1) }(document) }

  /// Ends at this document. Add conditions and orders before this call.
  public func end<T>(at document: DocumentSnapshot<T>) -> Query { bounded { $0.end(at: $1) }(document) }

  /// Ends before this document. Add conditions and orders before this call.
  public func end<T>(before document: DocumentSnapshot<T>) -> Query { bounded { $0.end(before: $1) }(document) }

  // MARK: - Nearest neighbors

  /// Finds the documents whose vector is nearest to `vector`, nearest first.
  /// - Parameter limit: the greatest number of results, up to 1,000.
  /// - Parameter distanceField: the name of a field of the results for the distance; `nil` for none.
  public func findNearest(
    _ path: FieldPath, to vector: VectorValue, limit: Int, measure: DistanceMeasure = .euclidean,
    distanceField: String? = nil
  ) -> Query {
    changed {
      $0.nearest = .of([
        "vectorField": path.reference, "queryVector": Value.vector(vector).json,
        "distanceMeasure": .string(measure.rawValue), "limit": .number(String(limit)),
        "distanceResultField": distanceField.map { .string($0) },
      ])
    }
  }

  private func changed(_ change: (inout Query) -> Void) -> Query {
    var query = query
    change(&query)
    return query
  }

  /// Returns a function that limits the query, with its complete order, by the values that a document has for this
  /// order.
  private func bounded<T>(_ bound: @escaping (Query, [Value]) -> Query) -> (DocumentSnapshot<T>) -> Query {
    var query = query
    query.orders = query.completeOrders
    return { [query] document in
      bound(query, query.orders.map { document.fields.ordered(by: $0.path, of: document.reference) })
    }
  }
}

extension [String: Value] {
  /// Returns the value of a document for an order.
  func ordered(by path: FieldPath, of reference: DocumentReference) -> Value {
    path == .documentID ? .reference(reference) : self[path] ?? .null
  }
}

/// The measure of the distance between vectors.
public enum DistanceMeasure: String, Sendable {
  /// The length of the line between them.
  case euclidean = "EUCLIDEAN"
  /// One minus the cosine of the angle between them.
  case cosine = "COSINE"
  /// Their dot product. Greater values are nearer.
  case dotProduct = "DOT_PRODUCT"
}
