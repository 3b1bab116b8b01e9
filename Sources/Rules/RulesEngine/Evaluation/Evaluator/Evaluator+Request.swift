import Basics
import DocumentModel
import WireFormat

/// The variables `request` and `resource`, and document lookups.
extension Evaluator {
  /// Returns the members of an object in the engine's order.
  private func members(of object: RequestObject) -> [RequestProperty] {
    switch object {
    case .request:
      switch request.method {
      case .get: [.time, .auth, .headers, .inTransaction, .path, .fields, .method]
      case .list: [.time, .auth, .headers, .inTransaction, .fields, .query, .path, .method]
      case .create, .update, .delete:
        [.time, .auth, .headers, .inTransaction, .path, .transforms, .writeFields, .readFields, .resource, .method]
      }
    case .auth: [.uid, .token]
    case .query:
      [
        .allDescendants, query?.includesDescendants == true ? .ancestor : .parent, .distinct, .groupBy, .kind, .limit,
        .offset, .orderBy, .selectOnlyKeys,
      ]
    case .resource(let view): view.pointee.name.isEmpty ? [.data] : [.data, .name, .id]
    }
  }

  /// Returns the value of a member, or `nil` if the object does not have it.
  func objectEntry(_ object: RequestObject, _ name: UnsafeRawBufferPointer, property: Int) -> RuleValue? {
    if property >= 0 { return value(of: RequestProperty.byNumber[property], in: object) }
    let known = members(of: object).first { member in
      name.elementsEqual(member.rawValue.utf8)
    }
    return known.flatMap { value(of: $0, in: object) }
  }

  /// Creates all members of an object. Returns `nil` if the arena is full.
  func objectEntries(_ object: RequestObject) -> UnsafeBufferPointer<MapEntry>? {
    let members = members(of: object)
    guard let entries = arena.take(MapEntry.self, members.count) else {
      _ = outOfMemory()
      return nil
    }
    var count = 0
    for member in members {
      guard let value = value(of: member, in: object), let name = copied(Array(member.rawValue.utf8)) else { continue }
      (entries + count).initialize(to: MapEntry(key: name, value: value))
      count += 1
    }
    return UnsafeBufferPointer(start: entries, count: count)
  }

  private func value(of property: RequestProperty, in object: RequestObject) -> RuleValue? {
    switch object {
    case .request: requestValue(property)
    case .auth:
      switch property {
      case .uid: request.uid.map(RuleValue.string) ?? .null
      case .token: request.claims.map(RuleValue.encodedFields) ?? .null
      default: nil
      }
    case .query: queryValue(property)
    case .resource(let view):
      switch property {
      case .data: view.pointee.data
      case .name where !view.pointee.name.isEmpty: .path(view.pointee.name)
      case .id: view.pointee.name.last.map { .string($0.text) }
      default: nil
      }
    }
  }

  private var isWrite: Bool { request.method != .get && request.method != .list }

  /// Returns texts as a list, or null.
  private func list(_ texts: [String]?) -> RuleValue {
    guard let texts else { return .null }
    guard let items = arena.take(RuleValue.self, texts.count) else { return outOfMemory() }
    for (index, field) in texts.enumerated() { (items + index).initialize(to: text(Array(field.utf8))) }
    return .list(UnsafeBufferPointer(start: items, count: texts.count))
  }

  private func requestValue(_ property: RequestProperty) -> RuleValue? {
    switch property {
    case .auth: return request.claims == nil ? .null : .object(.auth)
    case .method: return .string(request.method.bytes)
    case .path:
      // A collection group has no path.
      if requestPathKnown == 0 { return failure(.nullValue) }
      return .path(UnsafeBufferPointer(rebasing: requestPath[..<requestPathKnown]))
    case .time:
      usesTime = true
      return .timestamp(Moment(seconds: request.time.seconds, nanos: request.time.nanos))
    case .resource:
      return isWrite || request.bucket != nil ? newResource : nil
    case .query: return request.method == .list ? .object(.query) : nil
    case .headers: return .map(UnsafeBufferPointer(start: nil, count: 0))
    case .inTransaction: return .bool(request.isInTransaction)
    case .fields: return isWrite ? nil : .null
    case .writeFields, .transforms:
      if !isWrite { return nil }
      return list(property == .transforms ? transforms : writeFields)
    case .readFields: return isWrite ? .null : nil
    default: return nil
    }
  }

  private func queryValue(_ property: RequestProperty) -> RuleValue? {
    guard let query else { return nil }
    if request.isOfPipeline, [.limit, .offset, .orderBy].contains(property) { return nil }
    switch property {
    case .limit: return query.limit.map { .int(Int64($0)) } ?? .null
    case .offset: return .int(Int64(query.offset))
    case .orderBy:
      guard let entries = arena.take(MapEntry.self, query.orders.count) else { return outOfMemory() }
      var count = 0
      for order in query.orders {
        guard let key = copied(Array(order.path.text.utf8)) else { return stopFailure }
        let direction: StaticString = order.isDescending ? "DESC" : "ASC"
        (entries + count).initialize(to: MapEntry(key: key, value: .string(direction.bytes)))
        count += 1
      }
      return .map(UnsafeBufferPointer(start: entries, count: count))
    case .kind: return query.collectionID.map { text(Array($0.utf8)) } ?? .null
    case .allDescendants: return .bool(query.includesDescendants)
    case .distinct, .selectOnlyKeys: return .bool(false)
    case .groupBy: return .map(UnsafeBufferPointer(start: nil, count: 0))
    case .parent where !query.includesDescendants, .ancestor where query.includesDescendants:
      // The segments of the parent document, if the query has one.
      let count = 3 + query.parent.segmentCount
      return query.parent.isRoot ? .null : .path(UnsafeBufferPointer(rebasing: requestPath.prefix(count)))
    default: return nil
    }
  }

  /// Returns `resource` for a document, or null if the document does not exist.
  func documentValue(
    _ fields: UnsafeRawBufferPointer?, name: UnsafeBufferPointer<PathSegment>
  ) -> RuleValue {
    guard let fields else { return .null }
    return documentValue(data: .encodedFields(fields), name: name)
  }

  /// Returns `resource` with the given data.
  func documentValue(data: RuleValue, name: UnsafeBufferPointer<PathSegment>) -> RuleValue {
    guard let view = arena.take(DocumentView.self, 1) else { return outOfMemory() }
    view.initialize(to: DocumentView(name: name, data: data))
    return .object(.resource(UnsafePointer(view)))
  }

  // MARK: Lookups

  /// Evaluates `get`, `exists`, `getAfter` or `existsAfter` of a full document path in the request's database.
  func lookUp(_ builtin: Builtin, _ path: RuleValue) -> RuleValue {
    let name: StaticString =
      switch builtin {
      case .get: "get"
      case .exists: "exists"
      case .getAfter: "getAfter"
      default: "existsAfter"
      }
    guard case .path(let segments) = path else { return failure(.damaged) }
    if let unbound = segments.first(where: { !$0.isBound }) {
      return failure(.unboundVariable, text: unbound.name)
    }
    guard segments.count >= 5, segments.count % 2 == 1, RuleBytes.equal(segments[0].text, "databases"),
      RuleBytes.equal(segments[1].text, request.database), RuleBytes.equal(segments[2].text, "documents"),
      segments.allSatisfy({ !$0.text.isEmpty })
    else { return failure(.serviceCall, text: name, path) }
    let isExistence = builtin == .exists || builtin == .existsAfter
    let isAfter = builtin == .getAfter || builtin == .existsAfter
    let below = UnsafeBufferPointer(rebasing: segments[3...])
    // A document ID contains no slash, so this path names no document.
    if below.contains(where: { $0.text.contains(UInt8(ascii: "/")) }) {
      return isExistence ? .bool(false) : failure(.serviceCall, text: name, path)
    }
    guard let lookups, let bytes = joined(below) else { return failure(.serviceCall, text: name, path) }
    let isOwn = request.bucket == nil && RuleBytes.equal(bytes, request.path)
    guard
      let (outcome, fields) = lookups.document(
        at: bytes, isAfter: isAfter, isFree: isOwn, counted: &lookupCount, countedMax: request.lookupsMax)
    else { return failure(.serviceCall, text: name, path) }
    switch (outcome, isExistence) {
    case (.unavailable, _): return failure(.serviceCall, text: name, path)
    case (.found, true): return .bool(true)
    case (_, true): return .bool(false)
    case (.found, false):
      // The bytes are copied with the first lookup.
      guard charge((fields?.count ?? 0) >> 2) else { return stopFailure }
      return documentValue(fields, name: segments)
    case (.deleted, false): return .null
    case (.missing, false): return failure(.serviceCall, text: name, path)
    }
  }

  /// Joins segments with slashes. Returns `nil` if the work or memory budget is used up.
  private func joined(_ segments: UnsafeBufferPointer<PathSegment>) -> UnsafeRawBufferPointer? {
    let total = segments.reduce(segments.count - 1) { $0 + $1.text.count }
    guard charge(segments.count * 8 + total >> 2), let memory = arena.take(bytes: total) else { return nil }
    let out = UnsafeMutableRawBufferPointer(start: memory, count: total)
    var count = 0
    for (index, segment) in segments.enumerated() {
      if index > 0 {
        out[count] = UInt8(ascii: "/")
        count += 1
      }
      UnsafeMutableRawBufferPointer(rebasing: out[count...]).copyBytes(from: segment.text)
      count += segment.text.count
    }
    return UnsafeRawBufferPointer(out)
  }
}
