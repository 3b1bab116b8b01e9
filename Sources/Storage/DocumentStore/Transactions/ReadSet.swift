import DocumentModel
import Matching
import WireFormat

/// What a transaction read, as its commit rests on it.
///
/// Bounded: past ``exactBytesMax`` it forgets what exactly was read and keeps the collections only, and past many
/// collections it keeps that something was read. Then changes conflict that did not matter; none is overlooked.
package struct ReadSet: Sendable {
  /// A range that was noted, for as long as it is told apart.
  package struct RangeID: Sendable {
    fileprivate var coarsenings: Int
    fileprivate var index: Int
  }

  /// The version everything was read at.
  package let readVersion: Int64
  /// The version of each document that was asked for by name; 0 where it was missing.
  private(set) var documents: [DocumentKey: Int64] = [:]
  /// What decided the results of queries.
  private(set) var ranges: [QueryRange] = []
  /// Where any change at all conflicts.
  private(set) var scopes: Set<QueryScope> = []
  /// About how much memory it holds, in bytes.
  private(set) var bytes = 0
  private var coarsenings = 0

  /// Bytes up to which everything is told apart: 10,000 documents, or about 2,000 queries.
  static let exactBytesMax = 1 << 20
  private static let scopeBytesMax = exactBytesMax / 2

  /// Nothing, read at a version.
  package init(at readVersion: Int64) { self.readVersion = readVersion }

  /// Whether it rests on what the change log says.
  var searchesLog: Bool { !ranges.isEmpty || !scopes.isEmpty }

  /// Notes a document and its version, 0 for a missing one.
  mutating func note(_ key: DocumentKey, version: Int64) {
    guard !isCoarse(key.collection), documents.updateValue(version, forKey: key) == nil else { return }
    grow(by: 96 + key.path.bytes.count)
  }

  /// Notes what decided the result of a query.
  mutating func note(_ range: QueryRange) -> RangeID {
    let id = RangeID(coarsenings: coarsenings, index: ranges.count)
    ranges.append(range)
    grow(by: range.bytes)
    return id
  }

  /// Ends a range that was noted behind the last document that counted.
  mutating func end(_ id: RangeID, behind fields: EncodedMap, at path: ResourcePath) throws(WireError) {
    guard id.coarsenings == coarsenings else { return }
    let before = ranges[id.index].bytes
    try ranges[id.index].end(behind: fields, at: path)
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
