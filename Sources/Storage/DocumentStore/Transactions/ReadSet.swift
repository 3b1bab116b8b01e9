import DocumentModel
import Matching
import WireFormat

/// The reads of a transaction, which its commit depends on.
///
/// The size is bounded: above ``exactBytesMax`` the set keeps only the collections that were read, and with many
/// collections only the fact that something was read. Then unrelated changes may conflict, but no conflict is missed.
package struct ReadSet: Sendable {
  /// The identity of a noted range, valid until the set is coarsened.
  package struct RangeID: Sendable {
    fileprivate var coarsenings: Int
    fileprivate var index: Int
  }

  /// The version at which everything was read.
  package let readVersion: Int64
  /// The version of each document read by name; 0 for a missing one.
  private(set) var documents: [DocumentKey: Int64] = [:]
  /// The ranges that determine the results of queries.
  private(set) var ranges: [QueryRange] = []
  /// The scopes in which any change conflicts.
  private(set) var scopes: Set<QueryScope> = []
  /// The approximate memory of the set, in bytes.
  private(set) var bytes = 0
  private var coarsenings = 0

  /// The limit for exact reads, in bytes: 10,000 documents, or about 2,000 queries.
  static let exactBytesMax = 1 << 20
  private static let scopeBytesMax = exactBytesMax / 2

  /// Creates an empty set of reads at a version.
  package init(at readVersion: Int64) { self.readVersion = readVersion }

  /// Whether checking the set requires a search of the change log.
  var searchesLog: Bool { !ranges.isEmpty || !scopes.isEmpty }

  /// Adds a document and its version, 0 for a missing one.
  mutating func note(_ key: DocumentKey, version: Int64) {
    guard !isCoarse(key.collection), documents.updateValue(version, forKey: key) == nil else { return }
    grow(by: 96 + key.path.bytes.count)
  }

  /// Adds the range that determines the result of a query.
  mutating func note(_ range: QueryRange) -> RangeID {
    let id = RangeID(coarsenings: coarsenings, index: ranges.count)
    ranges.append(range)
    grow(by: range.bytes)
    return id
  }

  /// Ends a noted range after the last document in the result.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  mutating func end(_ id: RangeID, after fields: EncodedMap, at path: ResourcePath) throws(WireError) {
    guard id.coarsenings == coarsenings else { return }
    let before = ranges[id.index].bytes
    try ranges[id.index].end(after: fields, at: path)
    grow(by: ranges[id.index].bytes - before)
  }

  private mutating func grow(by count: Int) {
    bytes += count
    if bytes > Self.exactBytesMax { coarsen() }
  }

  private func isCoarse(_ collection: ResourcePath) -> Bool {
    !scopes.isEmpty && (scopes.contains(.collection(collection)) || scopes.contains(.subtree(.root)))
  }

  private mutating func coarsen() {
    for key in documents.keys { scopes.insert(.collection(key.collection)) }
    for range in ranges {
      if range.includesMissing, case .collection(let path) = range.scope {
        scopes.insert(.subtree(path))
      } else {
        scopes.insert(range.scope)
      }
    }
    documents = [:]
    ranges = []
    coarsenings += 1
    bytes = scopes.reduce(0) { $0 + $1.bytes }
    guard bytes > Self.scopeBytesMax else { return }
    scopes = [.subtree(.root)]
    bytes = QueryScope.subtree(.root).bytes
  }
}
