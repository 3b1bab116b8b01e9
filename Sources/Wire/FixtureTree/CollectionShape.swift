package import DocumentModel

/// The set of maps in a tree that are collections.
///
/// It is compiled from patterns such as `users/*/habits`. A pattern names collection IDs, and document IDs or `*`
/// for any document. A pattern includes the collections above it. Descending a tree takes one lookup per level.
package struct CollectionShape: Sendable {
  /// A document of the tree, or the root: the keys that are collections.
  struct DocumentNode: Sendable {
    var collections: [(id: [UInt8], node: Int)] = []
  }

  /// A collection: the nodes of its documents.
  struct CollectionNode: Sendable {
    var named: [(id: [UInt8], node: Int)] = []
    var other = 0
  }

  /// The patterns, as passed to the initializer.
  package let patterns: [String]
  private var documents: [DocumentNode] = []
  private var collections: [CollectionNode] = []

  /// The node of the tree's root.
  static let root = 0

  /// Compiles patterns.
  /// - Throws: ``InvalidPattern`` for the first invalid pattern, or if the patterns overlap in too many
  ///   combinations.
  package init(_ patterns: [String]) throws(InvalidPattern) {
    self.patterns = patterns
    var parsed: [ArraySlice<[UInt8]>] = []
    for pattern in patterns { parsed.append(try Self.parse(pattern)[...]) }
    _ = document(parsed)
    guard documents.count <= Self.nodesMax else {
      throw InvalidPattern(pattern: patterns.last ?? "", description: "the patterns overlap in too many combinations")
    }
  }

  /// The maximum number of combinations of overlapping patterns.
  static let nodesMax = 10_000

  /// The error for a pattern that does not name a collection.
  package struct InvalidPattern: Error, Equatable, Sendable, CustomStringConvertible {
    package let pattern: String
    /// The reason, and what to write instead.
    package let description: String
  }

  /// Returns the pattern of the collection at a path. Every document ID becomes `*`.
  package static func pattern(of collection: ResourcePath) -> String {
    var ids: [Substring] = []
    for (index, segment) in collection.segments.enumerated() {
      ids.append(index.isMultiple(of: 2) ? Substring(decoding: segment, as: UTF8.self) : "*")
    }
    return ids.joined(separator: "/")
  }

  /// Returns the sorted patterns of collections without repeats, as an export writes them to `$collections`.
  package static func patterns(of collections: some Sequence<ResourcePath>) -> [String] {
    var sorted = collections.map { Array(pattern(of: $0).utf8) }
    sorted.sort { Ordering.bytes($0, $1) == .less }
    var unique: [[UInt8]] = []
    for pattern in sorted where unique.last != pattern { unique.append(pattern) }
    return unique.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns whether no key of a document can be a collection.
  @inline(__always)
  func hasNoCollections(_ document: Int) -> Bool { documents[document].collections.isEmpty }

  /// Returns the collection that a key of a document names, or `nil` if the key is a field.
  func collection(_ key: UnsafeRawBufferPointer, in document: Int) -> Int? {
    Self.find(key, in: documents[document].collections)
  }

  /// Returns the node of the document with an ID in a collection.
  func document(_ id: UnsafeRawBufferPointer, in collection: Int) -> Int {
    Self.find(id, in: collections[collection].named) ?? collections[collection].other
  }

  private static func find(_ id: UnsafeRawBufferPointer, in nodes: [(id: [UInt8], node: Int)]) -> Int? {
    for (name, node) in nodes where name.count == id.count && name.elementsEqual(id) { return node }
    return nil
  }

  private static let anyDocument: [UInt8] = [UInt8(ascii: "*")]

  private static func parse(_ pattern: String) throws(InvalidPattern) -> [[UInt8]] {
    let segments = Array(pattern.utf8).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard !segments.count.isMultiple(of: 2) else {
      throw InvalidPattern(pattern: pattern, description: "it ends with a document; end it with a collection id")
    }
    do throws(ModelError) {
      _ = try ResourcePath(pattern)
    } catch {
      throw InvalidPattern(pattern: pattern, description: error.description)
    }
    guard !pattern.utf8.isEmpty else {
      throw InvalidPattern(pattern: pattern, description: "it is empty; write a collection id")
    }
    return segments.map(Array.init)
  }

  /// Adds the node for documents at this level. Each element of `rests` is the rest of a pattern and begins with a
  /// collection ID.
  private mutating func document(_ rests: [ArraySlice<[UInt8]>]) -> Int {
    let node = documents.count
    documents.append(DocumentNode())
    guard documents.count <= Self.nodesMax else { return node }
    var ids: [[UInt8]] = []
    for id in rests.compactMap(\.first) where !ids.contains(id) { ids.append(id) }
    for id in ids {
      let below = rests.filter { $0.first == id }.map { $0.dropFirst() }.filter { !$0.isEmpty }
      let child = collection(below)
      documents[node].collections.append((id, child))
    }
    return node
  }

  /// Adds the node of a collection. Each element of `rests` begins with a document ID or `*`.
  private mutating func collection(_ rests: [ArraySlice<[UInt8]>]) -> Int {
    let node = collections.count
    collections.append(CollectionNode())
    let general = rests.filter { $0.first == Self.anyDocument }
    let other = document(general.map { $0.dropFirst() })
    collections[node].other = other
    var ids: [[UInt8]] = []
    for id in rests.compactMap(\.first) where id != Self.anyDocument && !ids.contains(id) { ids.append(id) }
    for id in ids {
      let below = rests.filter { $0.first == id || $0.first == Self.anyDocument }.map { $0.dropFirst() }
      let child = document(below)
      collections[node].named.append((id, child))
    }
    return node
  }
}
