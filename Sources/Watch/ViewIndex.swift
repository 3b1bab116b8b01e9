import DocumentModel
import DocumentStore
import KeyEncoding
import Matching
import WireFormat

/// The subscriptions that follow one document, or whose authorization depends on it.
final class DocumentSubscriptions {
  /// The subscriptions that are notified of the document's changes.
  var subscriptions: Set<Subscription> = []
  /// The subscriptions whose authorization depends on the document's content.
  var guarded: Set<Subscription> = []

  var isEmpty: Bool { subscriptions.isEmpty && guarded.isEmpty }
}

/// The documents of one collection that subscriptions follow by name or depend on, by ID.
final class DocumentSet {
  var documents: [[UInt8]: DocumentSubscriptions] = [:]
}

/// The views of queries with the same scope.
///
/// If a query requires a field to equal a value, its view is found by that value. If 10,000 users each follow their
/// own documents in one collection, a change affects two views at most, and the others cost nothing.
final class ViewSet {
  private var views: [ObjectIdentifier: QueryView] = [:]
  private var pinned: [FieldPath: [[UInt8]: [QueryView]]] = [:]
  private var code: [UInt8] = []
  private var formerCode: [UInt8] = []

  var isEmpty: Bool { views.isEmpty && pinned.isEmpty }

  func insert(_ view: QueryView) {
    guard let pin = view.query.pin else { return views[ObjectIdentifier(view)] = view }
    pinned[pin.field, default: [:]][pin.code, default: []].append(view)
  }

  func remove(_ view: QueryView) {
    guard let pin = view.query.pin else { return views[ObjectIdentifier(view)] = nil }
    pinned[pin.field]?[pin.code]?.removeAll { $0 === view }
    if pinned[pin.field]?[pin.code]?.isEmpty == true { pinned[pin.field]?[pin.code] = nil }
    if pinned[pin.field]?.isEmpty == true { pinned[pin.field] = nil }
  }

  /// Calls `body` once for each view that a document may affect, in its state before or after the change.
  func forEach(_ transition: DocumentTransition, _ body: (QueryView) throws -> Void) throws {
    for view in views.values { try body(view) }
    for (field, views) in pinned {
      // The previous state is not known, so every value is possible.
      guard transition.isBeforeKnown else {
        for view in views.values.joined() { try body(view) }
        continue
      }
      let isNow = try Self.put(field, of: transition.now?.fields, into: &code)
      if isNow { for view in views[code] ?? [] { try body(view) } }
      let was = try Self.put(field, of: transition.before?.fields, into: &formerCode)
      if was, !isNow || code != formerCode { for view in views[formerCode] ?? [] { try body(view) } }
    }
  }

  /// Writes the code of a document's field to `code`. Returns `false` if the document lacks the field.
  private static func put(
    _ field: FieldPath, of fields: UnsafeRawBufferPointer?, into code: inout [UInt8]
  ) throws(WireError) -> Bool {
    guard let fields, let value = try EncodedMap(documentFields: fields).value(at: field) else { return false }
    code.removeAll(keepingCapacity: true)
    try OrderedCode.append(value, to: &code, budget: .max)
    return true
  }
}

/// The views and documents that changes in one collection may affect.
struct CollectionSubscriptions {
  let path: ResourcePath
  /// The views whose scopes contain the collection.
  let sets: [ViewSet]
  /// The documents that subscriptions follow by name or depend on.
  let documents: DocumentSet?
}

/// Finds the views and subscriptions that a changed document may affect, by its collection and its name.
struct ViewIndex {
  private var views: [WatchedQuery.Key: QueryView] = [:]
  private var sets: [QueryScope: ViewSet] = [:]
  /// The scopes of ``sets`` that are collection groups, by collection ID.
  private var groups: [[UInt8]: [QueryScope]] = [:]
  /// The scopes of ``sets`` that contain collections of several IDs.
  private var wide: [QueryScope] = []
  private var documents: [ResourcePath: DocumentSet] = [:]
  /// A cache by collection number, valid until a set is added or removed.
  private var found: [UInt64: CollectionSubscriptions] = [:]

  private static let foundMax = 10_000

  /// Returns the view of a query, and creates it if necessary.
  mutating func view(of query: WatchedQuery) -> QueryView {
    if let view = views[query.key] { return view }
    let view = QueryView(query)
    views[query.key] = view
    set(query.scope).insert(view)
    return view
  }

  private mutating func set(_ scope: QueryScope) -> ViewSet {
    if let set = sets[scope] { return set }
    let set = ViewSet()
    sets[scope] = set
    found.removeAll(keepingCapacity: true)
    switch scope {
    case .collection: break
    case .group(let id, _): groups[id, default: []].append(scope)
    case .children, .subtree: wide.append(scope)
    }
    return set
  }

  /// Removes a view that no longer has subscriptions.
  mutating func remove(_ view: QueryView) {
    let scope = view.query.scope
    views[view.query.key] = nil
    guard let set = sets[scope] else { return }
    set.remove(view)
    guard set.isEmpty else { return }
    sets[scope] = nil
    found.removeAll(keepingCapacity: true)
    switch scope {
    case .collection: break
    case .group(let id, _):
      groups[id]?.removeAll { $0 == scope }
      if groups[id]?.isEmpty == true { groups[id] = nil }
    case .children, .subtree: wide.removeAll { $0 == scope }
    }
  }

  var allViews: some Collection<QueryView> { views.values }

  /// Changes the subscriptions to a document, and removes their entry if none are left.
  mutating func change(_ key: DocumentKey, _ body: (DocumentSubscriptions) -> Void) {
    let collection = key.collection
    let id = Array(key.id)
    let interest = documents[collection]?.documents[id] ?? DocumentSubscriptions()
    body(interest)
    guard interest.isEmpty else { return set(of: collection).documents[id] = interest }
    documents[collection]?.documents[id] = nil
    guard documents[collection]?.documents.isEmpty == true else { return }
    documents[collection] = nil
    found.removeAll(keepingCapacity: true)
  }

  private mutating func set(of collection: ResourcePath) -> DocumentSet {
    if let set = documents[collection] { return set }
    let set = DocumentSet()
    documents[collection] = set
    found.removeAll(keepingCapacity: true)
    return set
  }

  /// Returns the views and documents in a collection, by its number. Calls `path` if they are not in the cache.
  mutating func interest(in number: UInt64, _ path: () throws -> ResourcePath) throws -> CollectionSubscriptions {
    if let known = found[number] { return known }
    let path = try path()
    var scopes: [QueryScope] = [.collection(path)]
    if !groups.isEmpty { scopes += groups[Array(path.lastSegment)] ?? [] }
    scopes += wide
    let interest = CollectionSubscriptions(
      path: path, sets: scopes.filter { $0.contains(path) }.compactMap { sets[$0] }, documents: documents[path])
    if found.count >= Self.foundMax { found.removeAll() }
    found[number] = interest
    return interest
  }

  /// Empties the cache, because collection numbers may now identify other collections.
  mutating func forgetNumbers() { found.removeAll() }
}
