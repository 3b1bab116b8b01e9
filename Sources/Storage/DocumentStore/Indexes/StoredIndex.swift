package import DocumentModel
import KeyValue
import Matching
import WireFormat

/// A declared index as the store keeps it: its number, its stored form, and how far it is.
package struct StoredIndex: Sendable {
  /// How far an index is. The numbers are on disk.
  package enum State: UInt8, Sendable {
    /// Every commit maintains it; documents from before are still being added.
    case building = 1
    /// Complete.
    case ready = 2
    /// No longer declared; its entries are being deleted.
    case removing = 3
    /// A document has an entry that is too large to be stored. It is neither maintained nor used.
    case failed = 4
  }

  /// The number its entries are stored under; never reused.
  package let number: UInt64
  /// The stored form; see ``DocumentModel/IndexDefinition/stored``.
  package let definition: IndexDefinition
  /// How far it is.
  package internal(set) var state: State
  /// How far its building is.
  var progress = IndexProgress()

  init(number: UInt64, definition: IndexDefinition, state: State) {
    self.number = number
    self.definition = definition
    self.state = state
  }

  /// The table of its entries.
  package var table: Table { definition.scope == .collection ? .compositeEntries : .groupEntries }

  /// Whether commits maintain it.
  var isMaintained: Bool { state == .building || state == .ready }

  init(number: UInt64, row: UnsafeRawBufferPointer) throws(StorageError) {
    var reader = IndexRowReader(row)
    guard let state = State(rawValue: UInt8(truncatingIfNeeded: try reader.number())) else {
      throw IndexRowReader.damage
    }
    self.init(number: number, definition: try reader.index(), state: state)
    progress = try reader.progress()
  }

  var row: [UInt8] {
    var row = IndexRow()
    row.append(UInt64(state.rawValue))
    row.append(definition)
    row.append(progress)
    return row.bytes
  }
}

extension IndexDefinition {
  /// The form in which the entries of an index are stored: without `__name__`, whose place behind all else is implied,
  /// and mirrored where the name would descend. Scanned backwards it gives the mirror, so that every definition and
  /// its mirror share one stored form. Not to be asked for twice: the implied name of a stored form always ascends.
  package var stored: IndexDefinition {
    var isDescending = false
    for field in fields where field.mode == .ascending || field.mode == .descending {
      isDescending = field.mode == .descending
    }
    var stored = self
    stored.fields = fields.filter { !$0.path.isDocumentName }
    guard isDescending else { return stored }
    for index in stored.fields.indices {
      switch stored.fields[index].mode {
      case .ascending: stored.fields[index].mode = .descending
      case .descending: stored.fields[index].mode = .ascending
      case .contains, .vector: break
      }
    }
    return stored
  }
}
