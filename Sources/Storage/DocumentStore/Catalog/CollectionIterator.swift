package import DocumentModel
import KeyEncoding
package import KeyValue
package import Matching

/// Goes through the collections of a scope in the order of their paths, emptied ones included.
///
/// A group of a few thousand collections is listed first; else the catalogue is gone through, whose rows stand in that
/// order already. Either way memory is bounded, and a tour goes on across snapshots.
package struct CollectionIterator {
  /// A collection on the way.
  package struct Stop: Sendable {
    /// Its path.
    package var path: ResourcePath
    /// The ``NameCode`` of the path.
    package var code: [UInt8]
  }

  /// What a step came to.
  package enum Step: Sendable {
    /// A collection of the scope.
    case stop(Stop)
    /// A row that had to be looked at and is none.
    case passed
    /// There are no more.
    case end
  }

  /// Collections of a group that are listed, at most.
  private static let listedMax = 4096

  private let scope: QueryScope
  private let root: ResourcePath
  private let rootCode: [UInt8]
  /// What the key of a collection of a group ends with.
  private let tail: [UInt8]
  /// Where to go on after ``close()``; `nil` at the end.
  private var place: [UInt8]?
  /// The codes of the paths of a group that was listed, in order, and how many of them were passed.
  private var listed: [[UInt8]]?
  private var passed = 0
  private var rows: PrefixCursor?
  private var key = StorageKey()

  /// Prepares a tour from the first collection whose code is not below `code`.
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

  /// Begins or goes on with the tour on a snapshot.
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

  /// Lets go of the snapshot.
  package mutating func close() {
    rows = nil
  }

  /// The next row. Cost: one step.
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
    // What lies below a collection stands behind it.
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

  /// A child of the path stands where exactly one segment follows; what lies below it is leapt over.
  private mutating func nextChild(_ suffix: UnsafeRawBufferPointer, _ rows: PrefixCursor) throws(StorageError) -> Step {
    var rest = suffix
    var id: [UInt8] = []
    guard OrderedCode.take(segment: &rest, into: &id) else {
      throw .corruption(path: "collections", detail: "a key that is no path")
    }
    let code = rootCode + Array(suffix.dropLast(rest.count))
    key.begin(.collections)
    key.append(raw: code)
    key.becomeUpperBound()
    place = Array(key.bytes[1...])
    try rows.seek(key)
    // Where only deeper collections have a row, there is none to look into.
    return rest.isEmpty ? .stop(Stop(path: root.appending(id), code: code)) : .passed
  }

  private static func path(_ code: [UInt8]) throws(StorageError) -> ResourcePath {
    guard let path = NameCode.decode(code) else {
      throw .corruption(path: "collections", detail: "a key that is no path")
    }
    return path
  }
}
