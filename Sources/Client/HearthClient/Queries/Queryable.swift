/// What documents can be asked of: a ``CollectionReference`` or a ``Query``. Each call returns a new query.
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
  /// Only documents that also meet a condition.
  public func `where`(_ filter: Filter) -> Query { changed { $0.filters.append(filter) } }

  /// Only documents whose field compares so.
  public func `where`(_ path: FieldPath, _ comparison: Filter.Comparison, _ value: Value) -> Query {
    self.where(.field(path, comparison, value))
  }

  /// In the order of a field, and within equals by what was asked for before. Only documents that have the field.
  public func order(by path: FieldPath, descending: Bool = false) -> Query {
    changed { $0.orders.append(Query.Order(path: path, isDescending: descending)) }
  }

  /// At most so many, from the start.
  public func limit(to count: Int) -> Query { changed { ($0.limit, $0.isFromEnd) = (count, false) } }

  /// At most so many, from the end; their order stays.
  public func limit(toLast count: Int) -> Query { changed { ($0.limit, $0.isFromEnd) = (count, true) } }

  /// Without the first `count`. They cost as much as those that are answered; to start behind a document does not.
  public func offset(_ count: Int) -> Query { changed { $0.offset = count } }

  /// Only these fields of the documents; none for names only.
  public func select(_ paths: [FieldPath]) -> Query { changed { $0.selection = paths } }

  // MARK: - Bounds

  /// From these values on: one for each field of the order, or for the first few.
  public func start(at values: [Value]) -> Query { changed { $0.start = Query.Bound(values: values, isBefore: true) } }

  /// Behind these values.
  public func start(after values: [Value]) -> Query {
    changed { $0.start = Query.Bound(values: values, isBefore: false) }
  }

  /// Up to these values.
  public func end(at values: [Value]) -> Query { changed { $0.end = Query.Bound(values: values, isBefore: false) } }

  /// Before these values.
  public func end(before values: [Value]) -> Query { changed { $0.end = Query.Bound(values: values, isBefore: true) } }

  /// From this document on. Conditions and orders are given before.
  public func start<T>(at document: DocumentSnapshot<T>) -> Query { bounded { $0.start(at: $1) }(document) }

  /// Behind this document: the next page. Conditions and orders are given before.
  public func start<T>(after document: DocumentSnapshot<T>) -> Query { bounded { $0.start(after: $1) }(document) }

  /// Up to this document. Conditions and orders are given before.
  public func end<T>(at document: DocumentSnapshot<T>) -> Query { bounded { $0.end(at: $1) }(document) }

  /// Before this document. Conditions and orders are given before.
  public func end<T>(before document: DocumentSnapshot<T>) -> Query { bounded { $0.end(before: $1) }(document) }

  // MARK: - Nearest

  /// The documents whose vector is nearest to this one, nearest first.
  /// - Parameter limit: how many, up to 1,000.
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

  /// Bounds a query that names its whole order by the values that a document has there.
  private func bounded<T>(_ bound: @escaping (Query, [Value]) -> Query) -> (DocumentSnapshot<T>) -> Query {
    var query = query
    query.orders = query.completeOrders
    return { [query] document in
      bound(query, query.orders.map { document.fields.ordered(by: $0.path, of: document.reference) })
    }
  }
}

extension [String: Value] {
  /// What a document is ordered by.
  func ordered(by path: FieldPath, of reference: DocumentReference) -> Value {
    path == .documentID ? .reference(reference) : self[path] ?? .null
  }
}

/// How far vectors are apart.
public enum DistanceMeasure: String, Sendable {
  /// The length of the way between them.
  case euclidean = "EUCLIDEAN"
  /// One less the cosine of the angle between them.
  case cosine = "COSINE"
  /// Their dot product, of which more is nearer.
  case dotProduct = "DOT_PRODUCT"
}
