import DocumentModel
import DocumentStore
import KeyEncoding
import Matching
import WireFormat

/// Who follows one document, or rests on it.
final class DocumentSubscriptions {
  /// Who is told of its changes.
  var subscriptions: [Subscription.ID: Subscription] = [:]
  /// Whose admission rests on what is in it.
  var guarded: [Subscription.ID: Subscription] = [:]

  var isEmpty: Bool { subscriptions.isEmpty && guarded.isEmpty }
}

/// The documents of one collection that somebody follows by name, or rests on, by id.
final class DocumentSet {
  var documents: [[UInt8]: DocumentSubscriptions] = [:]
}

/// The views of queries that look at the same collections.
///
/// Where a query wants a field to equal a value, its view is found by that value: of 10,000 users who each follow their
/// own documents in one collection, a change concerns two at most, and the others cost nothing.
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

  /// Calls `body` with each view that a document may concern, as it was or as it is, once.
  func forEach(_ transition: DocumentTransition, _ body: (QueryView) throws -> Void) throws {
    for view in views.values { try body(view) }
    for (field, views) in pinned {
      // Where nobody knows how the document was, all may have had it.
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

  /// Puts the code of a document's field into `code`; `false` where the document has none.
  private static func put(
    _ field: FieldPath, of fields: UnsafeRawBufferPointer?, into code: inout [UInt8]
  ) throws(WireError) -> Bool {
    guard let fields, let value = try EncodedMap(documentFields: fields).value(at: field) else { return false }
    code.removeAll(keepingCapacity: true)
    try OrderedCode.append(value, to: &code, budget: .max)
    return true
  }
}

/// Who cares about changes in one collection.
struct CollectionSubscriptions {
  let path: ResourcePath
  /// The queries that look here.
  let sets: [ViewSet]
  /// The documents that somebody follows by name, or rests on.
  let documents: DocumentSet?
}

/// Finds what a changed document concerns, by its collection and its name.
struct ViewIndex {
  private var views: [WatchedQuery.Key: QueryView] = [:]
  private var sets: [QueryScope: ViewSet] = [:]
  /// The scopes of ``sets`` that are groups, by collection id.
  private var groups: [[UInt8]: [QueryScope]] = [:]
  /// The scopes of ``sets`` that look at more than collections of one id.
  private var wide: [QueryScope] = []
  private var documents: [ResourcePath: DocumentSet] = [:]
  /// What is known of collections by number, as long as no set comes or goes.
  private var found: [UInt64: CollectionSubscriptions] = [:]

  private static let foundMax = 10_000

  /// The view of a query, made where there is none.
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

  /// Lets go of a view that nobody follows.
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

  /// Every view.
  var allViews: some Collection<QueryView> { views.values }

  /// Changes who follows a document, or rests on it.
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

  /// Who cares about a collection, by its number; `path` is asked where that is not known yet.
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

  /// Forgets the numbers of collections: they may name others now.
  mutating func forgetNumbers() { found.removeAll() }
}
