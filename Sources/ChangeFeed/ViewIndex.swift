import DocumentModel
import DocumentStore
import FieldMatch

/// Who follows one document, or rests on it.
final class DocumentInterest {
  /// Who is told of its changes.
  var followers: [Follower.ID: Follower] = [:]
  /// Whose admission rests on what is in it.
  var guarded: [Follower.ID: Follower] = [:]

  var isEmpty: Bool { followers.isEmpty && guarded.isEmpty }
}

/// Who cares about changes in one collection.
final class CollectionInterest {
  let path: ResourcePath
  /// The queries that look here.
  let views: [QueryView]
  /// The documents that somebody follows by name.
  var documents: [[UInt8]: DocumentInterest]

  init(_ path: ResourcePath, views: [QueryView], documents: [[UInt8]: DocumentInterest]) {
    self.path = path
    self.views = views
    self.documents = documents
  }
}

/// Finds what a changed document concerns, by its collection and its name.
struct ViewIndex {
  private var views: [FeedQuery.Key: QueryView] = [:]
  private var collections: [ResourcePath: [QueryView]] = [:]
  private var groups: [[UInt8]: [QueryView]] = [:]
  /// Queries that look at more than collections of one id.
  private var wide: [QueryView] = []
  private var documents: [ResourcePath: [[UInt8]: DocumentInterest]] = [:]
  /// What is known of collections by number, as long as nothing above changes.
  private var found: [UInt64: CollectionInterest] = [:]

  /// The view of a query, made where there is none.
  mutating func view(of query: FeedQuery) -> QueryView {
    if let view = views[query.key] { return view }
    let view = QueryView(query)
    views[query.key] = view
    found.removeAll(keepingCapacity: true)
    switch query.scope {
    case .collection(let path): collections[path, default: []].append(view)
    case .group(let id, _): groups[id, default: []].append(view)
    case .children, .subtree: wide.append(view)
    }
    return view
  }

  /// Lets go of a view that nobody follows.
  mutating func remove(_ view: QueryView) {
    views[view.query.key] = nil
    found.removeAll(keepingCapacity: true)
    switch view.query.scope {
    case .collection(let path): Self.remove(view, from: &collections, path)
    case .group(let id, _): Self.remove(view, from: &groups, id)
    case .children, .subtree: wide.removeAll { $0 === view }
    }
  }

  private static func remove<Key: Hashable>(_ view: QueryView, from views: inout [Key: [QueryView]], _ key: Key) {
    views[key]?.removeAll { $0 === view }
    if views[key]?.isEmpty == true { views[key] = nil }
  }

  /// Every view.
  var allViews: some Collection<QueryView> { views.values }

  /// Changes who follows a document, or rests on it.
  mutating func change(_ key: DocumentKey, _ body: (DocumentInterest) -> Void) {
    let collection = key.collection
    let id = Array(key.id)
    let interest = documents[collection]?[id] ?? DocumentInterest()
    body(interest)
    found.removeAll(keepingCapacity: true)
    documents[collection, default: [:]][id] = interest.isEmpty ? nil : interest
    if documents[collection]?.isEmpty == true { documents[collection] = nil }
  }

  /// Who cares about a collection, by its number; `path` is asked where that is not known yet.
  mutating func interest(in number: UInt64, _ path: () throws -> ResourcePath) throws -> CollectionInterest {
    if let known = found[number] { return known }
    let path = try path()
    var views = collections[path] ?? []
    if !groups.isEmpty, let group = groups[Array(path.lastSegment)] {
      views += group.filter { $0.query.scope.contains(path) }
    }
    views += wide.filter { $0.query.scope.contains(path) }
    let interest = CollectionInterest(path, views: views, documents: documents[path] ?? [:])
    if found.count >= Self.foundMax { found.removeAll() }
    found[number] = interest
    return interest
  }

  /// Forgets the numbers of collections: they may name others now.
  mutating func forgetNumbers() { found.removeAll() }

  private static let foundMax = 10_000
}
