import DocumentModel
import KeyValue
import Matching

/// The kinds of automatic entries that a field has.
struct AutomaticEntries: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let ascending = AutomaticEntries(rawValue: 1)
  static let containment = AutomaticEntries(rawValue: 2)
  static let all: AutomaticEntries = [.ascending, .containment]

  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Creates the set that a declaration requests. Ascending entries serve both directions.
  init(_ entries: Set<FieldIndexing.Entries>) {
    self = []
    for entry in entries where entry.scope == .collection {
      switch entry.mode {
      case .ascending, .descending: insert(.ascending)
      case .contains: insert(.containment)
      case .vector, .text: break
      }
    }
  }
}

/// A field with index settings of its own, or one whose settings were removed but are still being undone.
///
/// A setting governs the field and the fields inside it, except those with a setting of their own. When the
/// requested entries change, all entries that the setting governs are deleted and then made again. Only this order
/// ensures that no entry is left over or missing.
struct FieldSetting: Sendable {
  /// The progress of the entries. The numbers are on disk.
  enum State: UInt8, Sendable {
    /// Commits write no entries, and existing entries are being deleted.
    case clearing = 1
    /// Commits write entries, and those of existing documents are being added.
    case filling = 2
    /// The requested entries exist, and no others.
    case settled = 3
  }

  /// The collection ID, or ``FieldIndexing/allCollections``.
  let collectionID: [UInt8]
  /// The field, or ``FieldIndexing/allFields``.
  let path: FieldPath
  var entries: AutomaticEntries
  /// Whether documents are deleted after the time in this field.
  var expires: Bool
  /// The setting is no longer declared. It is removed once its entries match the setting that governs the field next.
  var isUndeclared = false
  var state = State.settled
  var progress = IndexProgress()

  init(collectionID: [UInt8], path: FieldPath, entries: AutomaticEntries, expires: Bool) {
    self.collectionID = collectionID
    self.path = path
    self.entries = entries
    self.expires = expires
  }

  var isForAllCollections: Bool { collectionID.elementsEqual(FieldIndexing.allCollections.utf8) }

  /// The entries that commits write.
  var written: AutomaticEntries { state == .clearing ? [] : entries }

  /// The entries that queries may scan.
  var readable: AutomaticEntries { state == .settled ? entries : [] }

  // MARK: Rows

  static func key(_ collectionID: [UInt8], _ path: FieldPath) -> StorageKey {
    var key = StorageKey()
    key.begin(.fieldSettings)
    key.append(segment: collectionID)
    for segment in path.segments { key.append(segment: Array(segment.utf8)) }
    return key
  }

  init(keySuffix: UnsafeRawBufferPointer, row: UnsafeRawBufferPointer) throws(StorageError) {
    var key = IndexRowReader(keySuffix)
    collectionID = try key.text()
    var segments: [String] = []
    while !key.isAtEnd { segments.append(String(decoding: try key.text(), as: UTF8.self)) }
    guard !segments.isEmpty else { throw IndexRowReader.damage }
    path = FieldPath(segments: segments)
    var reader = IndexRowReader(row)
    guard let state = State(rawValue: UInt8(truncatingIfNeeded: try reader.number())) else {
      throw IndexRowReader.damage
    }
    self.state = state
    entries = AutomaticEntries(rawValue: UInt8(truncatingIfNeeded: try reader.number())).intersection(.all)
    expires = try reader.number() == 1
    isUndeclared = try reader.number() == 1
    progress = try reader.progress()
  }

  var row: [UInt8] {
    var row = IndexRowWriter()
    row.append(UInt64(state.rawValue))
    row.append(UInt64(entries.rawValue))
    row.append(expires ? 1 : 0)
    row.append(isUndeclared ? 1 : 0)
    row.append(progress)
    return row.bytes
  }
}
