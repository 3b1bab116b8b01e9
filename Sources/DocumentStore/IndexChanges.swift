import FieldMatch
import DocumentModel
import WireFormat

/// The index entries that a change of one document removes and adds, with the values already in ``OrderedCode``.
///
/// Made on the caller's thread. Fields are named by their place in ``fields``, because only the writer gives out the
/// numbers that go into keys. Within one field all removals come before the additions.
struct IndexChanges: Sendable {
  /// A field that has entries: its name, and the field around it.
  struct Field: Sendable {
    /// The place of the field around this one in ``IndexChanges/fields``, or `nil` at the top of the document.
    var parent: Int?
    /// Where the name stands in ``IndexChanges/bytes``.
    var name: Range<Int>
  }

  /// One entry to write or remove.
  struct Entry: Sendable {
    /// ``Table/ascendingEntries`` or ``Table/containmentEntries``.
    var table: Table
    /// Whether the entry is written.
    var isAddition: Bool
    /// The place of the field in ``IndexChanges/fields``.
    var field: Int
    /// Where the value's code stands in ``IndexChanges/bytes``.
    var code: Range<Int>
  }

  /// Names and codes, one behind the other.
  private(set) var bytes: [UInt8] = []
  /// The fields in an order in which every field comes after the one around it.
  private(set) var fields: [Field] = []
  /// The entries in the order in which they must be applied.
  private(set) var entries: [Entry] = []

  /// Finds what differs between two states of a document; `nil` stands for no document.
  ///
  /// Cost: linear in both; equal fields cost a comparison of their bytes.
  /// - Throws: ``WireError`` when stored bytes are no fields.
  init(from old: EncodedMap?, to new: EncodedMap?) throws(WireError) {
    try add(from: old, to: new, parent: nil)
  }

  /// How many entries the fields of one document have in all.
  static func count(_ map: EncodedMap) throws(WireError) -> Int {
    var count = 0
    var entries = map.makeIterator()
    while let (_, value) = try entries.next() {
      count += 1
      switch try value.content {
      case .array(let array):
        var elements = array.makeIterator()
        while try elements.next() != nil { count += 1 }
      case .map(let inner):
        if try !inner.isOpaque { count += try self.count(inner) }
      default: break
      }
    }
    return count
  }

  private mutating func add(from old: EncodedMap?, to new: EncodedMap?, parent: Int?) throws(WireError) {
    var oldEntries = old?.makeIterator()
    var newEntries = new?.makeIterator()
    var before = try oldEntries?.next()
    var after = try newEntries?.next()
    while before != nil || after != nil {
      switch order(before?.key, after?.key) {
      case .less:
        if let (name, value) = before { try change(name, from: value, to: nil, parent: parent) }
        before = try oldEntries?.next()
      case .greater:
        if let (name, value) = after { try change(name, from: nil, to: value, parent: parent) }
        after = try newEntries?.next()
      case .equal:
        if let (name, value) = before, let (_, newValue) = after, !Self.isSame(value.bytes, newValue.bytes) {
          try change(name, from: value, to: newValue, parent: parent)
        }
        before = try oldEntries?.next()
        after = try newEntries?.next()
      }
    }
  }

  /// A missing key sorts last, so that the other side goes on alone.
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
    _ name: UnsafeRawBufferPointer, from old: EncodedValue?, to new: EncodedValue?, parent: Int?
  ) throws(WireError) {
    let start = bytes.count
    bytes.append(raw: name)
    let field = fields.count
    fields.append(Field(parent: parent, name: start..<bytes.count))
    if let old { try addEntries(of: old, field: field, isAddition: false) }
    if let new { try addEntries(of: new, field: field, isAddition: true) }
    let oldMap = try Self.innerMap(old)
    let newMap = try Self.innerMap(new)
    if oldMap != nil || newMap != nil { try add(from: oldMap, to: newMap, parent: field) }
  }

  private static func innerMap(_ value: EncodedValue?) throws(WireError) -> EncodedMap? {
    guard case .map(let map)? = try value?.content, try !map.isOpaque else { return nil }
    return map
  }

  private mutating func addEntries(of value: EncodedValue, field: Int, isAddition: Bool) throws(WireError) {
    try addEntry(value, .ascendingEntries, field: field, isAddition: isAddition)
    guard case .array(let array) = try value.content else { return }
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
