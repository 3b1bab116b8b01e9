package import DocumentModel
import KeyEncoding
package import KeyValue
package import Matching

/// An iterator over the collections of a scope in path order, including collections without documents.
///
/// A collection group of at most 4096 collections is listed up front. Otherwise the iterator reads the rows of the
/// catalog, which are already in path order. Memory is bounded in both cases, and an iterator can be closed and
/// opened again on a later snapshot.
package struct CollectionIterator {
  /// A collection of the scope.
  package struct Stop: Sendable {
    package var path: ResourcePath
    /// The ``NameCode`` of the path.
    package var code: [UInt8]
  }

  /// The result of one step.
  package enum Step: Sendable {
    /// A collection of the scope.
    case stop(Stop)
    /// The step read a row that is not in the scope.
    case passed
    /// The iteration is complete.
    case end
  }

  /// The most collections of a group that are listed up front.
  private static let listedMax = 4096

  private let scope: QueryScope
  private let root: ResourcePath
  private let rootCode: [UInt8]
  /// The end of the key of every collection in the group.
  private let tail: [UInt8]
  /// The position to resume from after ``close()``, or `nil` at the end.
  private var place: [UInt8]?
  /// The path codes of a listed group, in order.
  private var listed: [[UInt8]]?
  private var passed = 0  // The number of listed collections already returned.
  private var rows: PrefixCursor?
  private var key = StorageKey()

  /// Creates a closed iterator that starts at the first collection whose code is not below `code`.
  package init(_ scope: QueryScope, from code: [UInt8] = []) {
    self.scope = scope
    var tail: [UInt8] = []
    switch scope {
    case .collection(let path), .children(let path), .subtree(let path): root = path
    case .group(let id, let path):
      root = path
      OrderedCode.append(segment: id, to: &tail)
    }
    self.tail = tail
    rootCode = NameCode.encode(root)
    place = Ordering.raw(code, rootCode) == .less ? rootCode : code
  }

  /// Starts or resumes the iteration on a snapshot.
  /// - Throws: ``StorageError`` if the read fails.
  package mutating func open(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    guard listed == nil, let place else { return }
    var reader = SnapshotReader(snapshot)
    if case .group(let id, _) = scope,
      let paths = try reader.collections(ofGroup: id, countMax: Self.listedMax)
    {
      listed = paths.filter(scope.contains).map(NameCode.encode)
        .filter { Ordering.raw($0, place) != .less }.sorted { Ordering.raw($0, $1) == .less }
      return
    }
    key.begin(.collections)
    key.append(raw: rootCode)
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.begin(.collections)
    key.append(raw: place)
    try rows.seek(key)
    self.rows = rows
  }

  /// Releases the snapshot.
  package mutating func close() {
    rows = nil
  }

  /// Reads the next row. Cost: one step.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func next() throws(StorageError) -> Step {
    if let listed {
      guard passed < listed.count else { return .end }
      passed += 1
      return .stop(Stop(path: try Self.path(listed[passed - 1]), code: listed[passed - 1]))
    }
    guard let rows, let suffix = try rows.suffix() else {
      place = nil
      return .end
    }
    // The collections below this one follow it.
    place = rootCode + Array(suffix) + [0]
    if case .children = scope { return try nextChild(suffix, rows) }
    guard suffix.count >= tail.count, suffix.suffix(tail.count).elementsEqual(tail) else {
      rows.consume()
      return .passed
    }
    let code = rootCode + Array(suffix)
    let path = try Self.path(code)
    rows.consume()
    return scope.contains(path) ? .stop(Stop(path: path, code: code)) : .passed
  }

  /// Returns the child in a row if exactly one segment follows the root, and skips everything below that child.
  private mutating func nextChild(_ suffix: UnsafeRawBufferPointer, _ rows: PrefixCursor) throws(StorageError) -> Step {
    var rest = suffix
    var id: [UInt8] = []
    guard OrderedCode.take(segment: &rest, into: &id) else {
      throw .corruption(path: "collections", detail: "malformed collection path in a key")
    }
    let code = rootCode + Array(suffix.dropLast(rest.count))
    key.begin(.collections)
    key.append(raw: code)
    key.becomeUpperBound()
    place = Array(key.bytes[1...])
    try rows.seek(key)
    // If only deeper collections have rows, the child itself has none and contains no documents.
    return rest.isEmpty ? .stop(Stop(path: root.appending(id), code: code)) : .passed
  }

  private static func path(_ code: [UInt8]) throws(StorageError) -> ResourcePath {
    guard let path = NameCode.decode(code) else {
      throw .corruption(path: "collections", detail: "malformed collection path in a key")
    }
    return path
  }
}
