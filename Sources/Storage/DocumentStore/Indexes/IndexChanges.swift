import DocumentModel
import KeyEncoding
import WireFormat

/// The index entries that a change of one document removes and adds, with values in ``OrderedCode``.
///
/// Made on the caller's thread. Entries refer to fields by their index in ``fields``, because only the writer
/// assigns the field numbers used in keys. Within one field, all removals precede the additions.
struct IndexChanges: Sendable {
  /// A field with entries: its name and its parent field.
  struct Field: Sendable {
    /// The index of the parent in ``IndexChanges/fields``, or `nil` at the top of the document.
    var parent: Int?
    /// The range of the name in ``IndexChanges/bytes``.
    var name: Range<Int>
  }

  /// One entry to write or remove.
  struct Entry: Sendable {
    /// ``Table/ascendingEntries`` or ``Table/containmentEntries``.
    var table: Table
    /// Whether the entry is added; otherwise it is removed.
    var isAddition: Bool
    /// The index of the field in ``IndexChanges/fields``.
    var field: Int
    /// The range of the value's code in ``IndexChanges/bytes``.
    var code: Range<Int>
  }

  /// One entry of a declared index.
  struct CompositeEntry: Sendable {
    /// The number of the index.
    var index: UInt64
    /// ``Table/compositeEntries`` or ``Table/groupEntries``.
    var table: Table
    /// Whether the entry is added; otherwise it is removed.
    var isAddition: Bool
    /// The range of the codes in ``IndexChanges/bytes``.
    var code: Range<Int>
  }

  /// All names and codes, concatenated.
  private(set) var bytes: [UInt8] = []
  /// The fields. Every field follows its parent.
  private(set) var fields: [Field] = []
  /// The entries in the order in which they must be applied.
  private(set) var entries: [Entry] = []
  /// The entries of declared indexes. Within one index, all removals precede the additions.
  private(set) var composites: [CompositeEntry] = []
  private let rules: FieldRules?

  /// Computes the difference between two states of a document; `nil` means that the document does not exist.
  ///
  /// `indexing` is the indexing of the document's collection, or `nil` if every field has its automatic entries.
  /// Cost: linear in both states; equal fields cost a comparison of their bytes.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields, or an entry is too large.
  init(from old: EncodedMap?, to new: EncodedMap?, indexing: CollectionIndexing? = nil) throws(WireError) {
    rules = indexing?.rules
    try add(from: old, to: new, parent: nil, in: FieldRules.root)
    for index in indexing?.maintained ?? [] { try addEntries(of: index, from: old, to: new) }
  }

  /// Returns the number of entries of one document, counting the most possible for declared indexes.
  static func count(_ map: EncodedMap, indexing: CollectionIndexing?) throws(WireError) -> Int {
    var count = try count(map, indexing?.rules, in: FieldRules.root)
    for index in indexing?.maintained ?? [] { count += try index.countMax(of: map) }
    return count
  }

  private static func count(
    _ map: EncodedMap, _ rules: FieldRules?, in parent: FieldRules.Place
  ) throws(WireError) -> Int {
    var count = 0
    var entries = map.makeIterator()
    while let (name, value) = try entries.next() {
      let place = rules?.place(of: name, in: parent) ?? parent
      let written = rules?.written(at: place) ?? .all
      if written.contains(.ascending) { count += 1 }
      switch try value.content {
      case .array(let array): if written.contains(.containment) { count += try array.count }
      case .map(let inner): if try !inner.isOpaque { count += try self.count(inner, rules, in: place) }
      default: break
      }
    }
    return count
  }

  private mutating func addEntries(
    of index: StoredIndex, from old: EncodedMap?, to new: EncodedMap?
  ) throws(WireError) {
    if let old, let new, try index.isSame(old, new) { return }
    let before = if let old { try index.codes(of: old, into: &bytes) } else { [Range<Int>]() }
    let after = if let new { try index.codes(of: new, into: &bytes) } else { [Range<Int>]() }
    var additions: [Range<Int>] = []
    var next = 0
    // Both are sorted. A code in only one of them is removed or added.
    for code in before {
      while next < after.count, Ordering.bytes(bytes[after[next]], bytes[code]) == .less {
        additions.append(after[next])
        next += 1
      }
      if next < after.count, bytes[after[next]] == bytes[code] {
        next += 1
      } else {
        composites.append(
          CompositeEntry(index: index.number, table: index.table, isAddition: false, code: code))
      }
    }
    for code in additions + after[next...] {
      composites.append(CompositeEntry(index: index.number, table: index.table, isAddition: true, code: code))
    }
  }

  private mutating func add(
    from old: EncodedMap?, to new: EncodedMap?, parent: Int?, in place: FieldRules.Place
  ) throws(WireError) {
    var oldEntries = old?.makeIterator()
    var newEntries = new?.makeIterator()
    var before = try oldEntries?.next()
    var after = try newEntries?.next()
    while before != nil || after != nil {
      switch order(before?.key, after?.key) {
      case .less:
        if let (name, value) = before { try change(name, from: value, to: nil, parent: parent, in: place) }
        before = try oldEntries?.next()
      case .greater:
        if let (name, value) = after { try change(name, from: nil, to: value, parent: parent, in: place) }
        after = try newEntries?.next()
      case .equal:
        if let (name, value) = before, let (_, newValue) = after, !Self.isSame(value.bytes, newValue.bytes) {
          try change(name, from: value, to: newValue, parent: parent, in: place)
        }
        before = try oldEntries?.next()
        after = try newEntries?.next()
      }
    }
  }

  /// Compares two names. A missing name sorts last, so that the other side continues alone.
  private func order(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> Ordering {
    switch (a, b) {
    case (let a?, let b?): Ordering.bytes(a, b)
    case (_?, nil): .less
    default: .greater
    }
  }

  private static func isSame(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && a.elementsEqual(b)
  }

  private mutating func change(
    _ name: UnsafeRawBufferPointer, from old: EncodedValue?, to new: EncodedValue?, parent: Int?,
    in outer: FieldRules.Place
  ) throws(WireError) {
    let place = rules?.place(of: name, in: outer) ?? outer
    let written = rules?.written(at: place) ?? .all
    guard !written.isEmpty || rules?.hasChildren(at: place) == true else { return }
    let start = bytes.count
    bytes.append(raw: name)
    let field = fields.count
    fields.append(Field(parent: parent, name: start..<bytes.count))
    if let old { try addEntries(of: old, written, field: field, isAddition: false) }
    if let new { try addEntries(of: new, written, field: field, isAddition: true) }
    let oldMap = try Self.innerMap(old)
    let newMap = try Self.innerMap(new)
    if oldMap != nil || newMap != nil { try add(from: oldMap, to: newMap, parent: field, in: place) }
  }

  private static func innerMap(_ value: EncodedValue?) throws(WireError) -> EncodedMap? {
    guard case .map(let map)? = try value?.content, try !map.isOpaque else { return nil }
    return map
  }

  private mutating func addEntries(
    of value: EncodedValue, _ written: AutomaticEntries, field: Int, isAddition: Bool
  ) throws(WireError) {
    if written.contains(.ascending) { try addEntry(value, .ascendingEntries, field: field, isAddition: isAddition) }
    guard written.contains(.containment), case .array(let array) = try value.content else { return }
    var elements = array.makeIterator()
    while let element = try elements.next() {
      try addEntry(element, .containmentEntries, field: field, isAddition: isAddition)
    }
  }

  private mutating func addEntry(
    _ value: EncodedValue, _ table: Table, field: Int, isAddition: Bool
  ) throws(WireError) {
    let start = bytes.count
    try OrderedCode.append(value, to: &bytes)
    entries.append(Entry(table: table, isAddition: isAddition, field: field, code: start..<bytes.count))
  }
}
