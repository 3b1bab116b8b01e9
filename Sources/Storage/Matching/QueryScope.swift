package import DocumentModel

/// The collections that a query covers.
package enum QueryScope: Hashable, Sendable {
  /// One collection.
  case collection(ResourcePath)
  /// All collections with an ID, at any depth below the root or a document.
  case group([UInt8], below: ResourcePath)
  /// All collections directly below the root or a document.
  case children(of: ResourcePath)
  /// All collections at or below a path.
  case subtree(ResourcePath)

  /// Creates the scope of a query.
  package init(_ query: Query) {
    switch (query.collectionID, query.includesDescendants) {
    case (let id?, false): self = .collection(query.parent.appending(id))
    case (let id?, true): self = .group(Array(id.utf8), below: query.parent)
    case (nil, false): self = .children(of: query.parent)
    case (nil, true): self = .subtree(query.parent)
    }
  }

  /// Returns whether a collection is in the scope.
  package func contains(_ collection: ResourcePath) -> Bool {
    switch self {
    case .collection(let path): collection == path
    case .group(let id, let root): collection.lastSegment.elementsEqual(id) && collection.parent.isAtOrBelow(root)
    case .children(let root): collection.parent == root
    case .subtree(let root): collection.isAtOrBelow(root)
    }
  }

  /// The approximate memory of the scope, in bytes.
  package var bytes: Int {
    switch self {
    case .collection(let path), .children(let path), .subtree(let path): 64 + path.bytes.count
    case .group(let id, let root): 96 + id.count + root.bytes.count
    }
  }
}
