import FieldMatch
package import DocumentModel
package import KeyValueStore

/// Which of the collections below a path are meant.
package struct CollectionSelection: Hashable, Sendable {
  /// What is asked of a collection.
  package enum Condition: Hashable, Sendable {
    /// Its id is this, at any depth.
    case id([UInt8])
    /// It lies directly below the path.
    case child
    /// Nothing.
    case none
  }

  /// The root or the document below which they lie.
  package var parent: ResourcePath
  /// What is asked of each.
  package var condition: Condition

  /// Selects the collections below `parent` that meet a condition.
  package init(below parent: ResourcePath, _ condition: Condition) {
    self.parent = parent
    self.condition = condition
  }

  /// Whether a collection is one of them.
  package func contains(_ path: ResourcePath) -> Bool {
    guard path.isAtOrBelow(parent) else { return false }
    return switch condition {
    case .id(let id): path.lastSegment.elementsEqual(id)
    case .child: path.parent == parent
    case .none: true
    }
  }
}

/// Goes through the collections of a selection in the order of their paths, emptied ones included.
///
/// A group of a few thousand collections is listed first; else the catalogue is gone through, whose rows stand in that
/// order already. Either way memory is bounded, and a tour goes on across snapshots.
package struct CollectionTour {
  /// A collection on the way.
  package struct Stop: Sendable {
    /// Its path.
    package var path: ResourcePath
    /// The ``NameCode`` of the path.
    package var code: [UInt8]
    /// Its row.
    package var row: DocumentReader.CollectionRow
  }

  /// What a step came to.
  package enum Step: Sendable {
    /// A collection of the selection.
    case stop(Stop)
    /// A row that had to be looked at and is none.
    case passed
    /// There are no more.
    case end
  }

  /// Collections of a group that are listed, at most.
  private static let listedMax = 4096

  private let selection: CollectionSelection
  private let parentCode: [UInt8]
  /// What the key of a collection of a group ends with.
  private let tail: [UInt8]
  /// Where to go on after ``close()``; `nil` at the end.
  private var place: [UInt8]?
  /// The codes of the paths of a group that was listed, in order, and how many of them were passed.
  private var listed: [[UInt8]]?
  private var passed = 0
  private var rows: Cursor?
  private var reader: DocumentReader?
  private var key = StorageKey()

  /// Prepares a tour from the first collection whose code is not below `code`.
  package init(_ selection: CollectionSelection, from code: [UInt8] = []) {
    self.selection = selection
    parentCode = NameCode.encode(selection.parent)
    var tail: [UInt8] = []
    if case .id(let id) = selection.condition { OrderedCode.append(segment: id, to: &tail) }
    self.tail = tail
    place = Ordering.raw(code, parentCode) == .less ? parentCode : code
  }

  /// Begins or goes on with the tour on a snapshot.
  package mutating func open(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    var reader = DocumentReader(snapshot)
    defer { self.reader = reader }
    guard listed == nil, let place else { return }
    if case .id(let id) = selection.condition,
      let paths = try reader.collections(ofGroup: id, countMax: Self.listedMax)
    {
      listed = paths.filter(selection.contains).map(NameCode.encode)
        .filter { Ordering.raw($0, place) != .less }.sorted { Ordering.raw($0, $1) == .less }
      return
    }
    key.begin(.collections)
    key.append(raw: parentCode)
    let rows = Cursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.begin(.collections)
    key.append(raw: place)
    try rows.seek(key)
    self.rows = rows
  }

  /// Lets go of the snapshot.
  package mutating func close() {
    reader = nil
    rows = nil
  }

  /// The next row. Cost: one step, and a lookup where the collections were listed.
  package mutating func next() throws(StorageError) -> Step {
    if let listed {
      guard passed < listed.count else { return .end }
      let code = listed[passed]
      passed += 1
      let path = try Self.path(code)
      // A row outlives its documents, so it is there.
      guard let row = try reader?.collection(path) else { return .passed }
      return .stop(Stop(path: path, code: code, row: row))
    }
    guard let rows, let suffix = try rows.suffix() else {
      place = nil
      return .end
    }
    // What lies below a collection stands behind it.
    place = parentCode + Array(suffix) + [0]
    if case .child = selection.condition { return try nextChild(suffix, rows) }
    guard suffix.count >= tail.count, suffix.suffix(tail.count).elementsEqual(tail) else {
      rows.consume()
      return .passed
    }
    let code = parentCode + Array(suffix)
    let path = try Self.path(code)
    let row = try DocumentReader.decodeCollection(rows.cursor.value)
    rows.consume()
    return selection.contains(path) ? .stop(Stop(path: path, code: code, row: row)) : .passed
  }

  /// A child of the path stands where exactly one segment follows; what lies below it is leapt over.
  private mutating func nextChild(_ suffix: UnsafeRawBufferPointer, _ rows: Cursor) throws(StorageError) -> Step {
    var rest = suffix
    var id: [UInt8] = []
    guard OrderedCode.take(segment: &rest, into: &id) else {
      throw .corruption(path: "collections", detail: "a key that is no path")
    }
    let code = parentCode + Array(suffix.dropLast(rest.count))
    let row = rest.isEmpty ? try DocumentReader.decodeCollection(rows.cursor.value) : nil
    key.begin(.collections)
    key.append(raw: code)
    key.becomeUpperBound()
    place = Array(key.bytes[1...])
    try rows.seek(key)
    guard let row else { return .passed }
    return .stop(Stop(path: selection.parent.appending(id), code: code, row: row))
  }

  private static func path(_ code: [UInt8]) throws(StorageError) -> ResourcePath {
    guard let path = NameCode.decode(code) else {
      throw .corruption(path: "collections", detail: "a key that is no path")
    }
    return path
  }
}
