package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredQuery` below a parent.
  ///
  /// Only the operators and operands are validated here. The query engine validates their combination.
  /// - Throws: ``WireError`` with the documented text if the message is malformed.
  package func query(_ value: JSONValue, below parent: ResourcePath) throws(WireError) -> Query {
    var query = Query(parent: parent, collectionID: nil)
    var members = try members(of: value, "google.firestore.v1.StructuredQuery")
    while let (name, value) = members.next() {
      switch name {
      case "select":
        enter("select")
        query.projection = try projection(value)
        leave()
      case "from":
        enter("from")
        try from(value, into: &query)
        leave()
      case "where":
        enter("where")
        query.filter = try filter(value)
        leave()
      case "orderBy", "order_by":
        enter("order_by")
        query.orders = try orders(value)
        leave()
      case "startAt", "start_at":
        enter("start_at")
        query.start = try bound(value)
        leave()
      case "endAt", "end_at":
        enter("end_at")
        query.end = try bound(value)
        leave()
      case "findNearest", "find_nearest":
        enter("find_nearest")
        query.findNearest = try findNearest(value)
        leave()
      case "offset": query.offset = Int(try int32(value, "offset"))
      case "limit": query.limit = Int(try int32Value(value, "limit"))
      default: throw unknown(name)
      }
    }
    return query
  }

  private func projection(_ value: JSONValue) throws(WireError) -> FieldMask {
    var paths: [FieldPath] = []
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.Projection")
    while let (name, value) = members.next() {
      guard "fields" ~= name else { throw unknown(name) }
      enter("fields")
      var fields = try elements(of: value)
      while let field = fields.next() {
        element(paths.count)
        paths.append(try fieldReference(field))
      }
      leave()
    }
    return FieldMask(paths)
  }

  /// Decodes a FieldReference message.
  func fieldReference(_ value: JSONValue) throws(WireError) -> FieldPath {
    var path: FieldPath?
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.FieldReference")
    while let (name, value) = members.next() {
      guard "fieldPath" ~= name || "field_path" ~= name else { throw unknown(name) }
      path = try fieldPath(value, "field_path")
    }
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }

  private func from(_ value: JSONValue, into query: inout Query) throws(WireError) {
    var count = 0
    var selectors = try elements(of: value)
    while let selector = selectors.next() {
      element(count)
      count += 1
      guard count == 1 else { throw .model(.severalSelectors) }
      var members = try members(of: selector, "google.firestore.v1.StructuredQuery.CollectionSelector")
      while let (name, value) = members.next() {
        switch name {
        case "collectionId", "collection_id":
          let id = String(decoding: try string(value, "collection_id"), as: UTF8.self)
          query.collectionID = id.isEmpty ? nil : id
        case "allDescendants", "all_descendants": query.includesDescendants = try bool(value, "all_descendants")
        default: throw unknown(name)
        }
      }
    }
    try query.checkCollectionID()
  }

  private func orders(_ value: JSONValue) throws(WireError) -> [Order] {
    var orders: [Order] = []
    var list = try elements(of: value)
    while let item = list.next() {
      element(orders.count)
      var path: FieldPath?
      var isDescending = false
      var members = try members(of: item, "google.firestore.v1.StructuredQuery.Order")
      while let (name, value) = members.next() {
        switch name {
        case "field":
          enter("field")
          path = try fieldReference(value)
          leave()
        case "direction":
          isDescending =
            try enumeration(
              value, "direction", "google.firestore.v1.StructuredQuery.Direction", "DIRECTION_UNSPECIFIED", "ASCENDING",
              "DESCENDING") == 2
        default: throw unknown(name)
        }
      }
      guard let path else { throw .model(.emptyFieldPath) }
      orders.append(Order(path, isDescending: isDescending))
    }
    return orders
  }

  private func bound(_ value: JSONValue) throws(WireError) -> QueryBound {
    var bound = QueryBound([], isBefore: false)
    var members = try members(of: value, "google.firestore.v1.Cursor")
    while let (name, value) = members.next() {
      switch name {
      case "before": bound.isBefore = try bool(value, "before")
      case "values":
        enter("values")
        var values = try elements(of: value)
        while let value = values.next() {
          element(bound.values.count)
          bound.values.append(try self.value(value, .operand))
        }
        leave()
      default: throw unknown(name)
      }
    }
    return bound
  }

  // MARK: Filters

  /// Decodes a filter. The JSON parser's limit on nesting bounds the recursion.
  private func filter(_ value: JSONValue) throws(WireError) -> QueryFilter {
    var filter: QueryFilter?
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.Filter")
    while let (name, value) = members.next() {
      guard filter == nil else { throw alreadySet("filter_type", name) }
      switch name {
      case "compositeFilter", "composite_filter":
        enter("composite_filter")
        filter = try compositeFilter(value)
      case "fieldFilter", "field_filter":
        enter("field_filter")
        filter = try fieldFilter(value)
      case "unaryFilter", "unary_filter":
        enter("unary_filter")
        filter = try unaryFilter(value)
      default: throw unknown(name)
      }
      leave()
    }
    guard let filter else { throw .model(.emptyFilter) }
    return filter
  }

  private func compositeFilter(_ value: JSONValue) throws(WireError) -> QueryFilter {
    var op = 0
    var filters: [QueryFilter] = []
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.CompositeFilter")
    while let (name, value) = members.next() {
      switch name {
      case "op":
        op = try enumeration(
          value, "op", "google.firestore.v1.StructuredQuery.CompositeFilter.Operator", "OPERATOR_UNSPECIFIED", "AND",
          "OR")
      case "filters":
        enter("filters")
        var list = try elements(of: value)
        while let item = list.next() {
          element(filters.count)
          filters.append(try filter(item))
        }
        leave()
      default: throw unknown(name)
      }
    }
    switch op {
    case 1: return .and(filters)
    case 2: return .or(filters)
    default: throw .model(.unsupportedCompositeOperator)
    }
  }

  private func fieldFilter(_ value: JSONValue) throws(WireError) -> QueryFilter {
    var path: FieldPath?
    var op: FieldOperator?
    var operand: Value?
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.FieldFilter")
    while let (name, value) = members.next() {
      switch name {
      case "field":
        enter("field")
        path = try fieldReference(value)
        leave()
      case "op":
        op = FieldOperator(
          rawValue: try enumeration(
            value, "op", "google.firestore.v1.StructuredQuery.FieldFilter.Operator", of: FieldOperator.wireNames))
      case "value":
        enter("value")
        operand = try self.value(value, .operand)
        leave()
      default: throw unknown(name)
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownFieldOperator) }
    guard let operand else { throw .model(.unsetValue) }
    return .field(path, op, operand)
  }

  private func unaryFilter(_ value: JSONValue) throws(WireError) -> QueryFilter {
    var path: FieldPath?
    var op: UnaryOperator?
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.UnaryFilter")
    while let (name, value) = members.next() {
      switch name {
      case "field":
        enter("field")
        path = try fieldReference(value)
        leave()
      case "op":
        op = UnaryOperator(
          rawValue: try enumeration(
            value, "op", "google.firestore.v1.StructuredQuery.UnaryFilter.Operator", "OPERATOR_UNSPECIFIED", "",
            "IS_NAN", "IS_NULL", "IS_NOT_NAN", "IS_NOT_NULL"))
      default: throw unknown(name)
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownUnaryOperator) }
    return .unary(path, op)
  }
}
