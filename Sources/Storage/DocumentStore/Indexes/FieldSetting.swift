import DocumentModel
import KeyValue
import Matching

/// Which of the automatic entries a field has.
struct AutomaticEntries: OptionSet, Hashable, Sendable {
  let rawValue: UInt8

  static let ascending = AutomaticEntries(rawValue: 1)
  static let containment = AutomaticEntries(rawValue: 2)
  static let all: AutomaticEntries = [.ascending, .containment]

  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// What a declaration leaves of them. Ascending entries serve both directions.
  init(_ entries: Set<FieldIndexing.Entries>) {
    self = []
    for entry in entries where entry.scope == .collection {
      switch entry.mode {
      case .ascending, .descending: insert(.ascending)
      case .contains: insert(.containment)
      case .vector: break
      }
    }
  }
}

/// A field whose entries are not the automatic ones, or were not until lately.
///
/// It governs the field, and the fields inside it, except where a setting of their own does. Whenever what it asks for
/// changes, all entries it governs are deleted first and then made anew: only then is none left over or missing.
struct FieldSetting: Sendable {
  /// How far the entries follow. The numbers are on disk.
  enum State: UInt8, Sendable {
    /// Commits write none; what is there is being deleted.
    case clearing = 1
    /// Every commit writes them; documents from before are still being added.
    case filling = 2
    /// The entries are there, and no others.
    case settled = 3
  }

  /// The collections' id, or ``FieldIndexing/allCollections``.
  let collectionID: [UInt8]
  /// The field, or ``FieldIndexing/allFields``.
  let path: FieldPath
  var entries: AutomaticEntries
  /// Whether documents vanish after the time the field holds.
  var expires: Bool
  /// No longer declared: it stands until its entries are what what governs next asks for.
  var isLifted = false
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
    isLifted = try reader.number() == 1
    progress = try reader.progress()
  }

  var row: [UInt8] {
    var row = IndexRow()
    row.append(UInt64(state.rawValue))
    row.append(UInt64(entries.rawValue))
    row.append(expires ? 1 : 0)
    row.append(isLifted ? 1 : 0)
    row.append(progress)
    return row.bytes
  }
}
