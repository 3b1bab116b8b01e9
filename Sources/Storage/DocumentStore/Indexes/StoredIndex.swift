package import DocumentModel
import KeyValue
import Matching
import TextAnalysis
import WireFormat

/// A declared index in the store: its number, stored form and state.
package struct StoredIndex: Sendable {
  /// The state of an index. The numbers are on disk.
  package enum State: UInt8, Sendable {
    /// Commits maintain it, and entries of existing documents are being added.
    case building = 1
    /// Complete.
    case ready = 2
    /// No longer declared; its entries are being deleted.
    case removing = 3
    /// A document's entry exceeds the size limit. Commits do not maintain the index, and queries do not use it.
    case failed = 4
  }

  /// The number in the keys of its entries. Never reused.
  package let number: UInt64
  /// The stored form; see ``DocumentModel/IndexDefinition/stored``.
  package let definition: IndexDefinition
  package internal(set) var state: State
  /// The progress of building it.
  var progress = IndexProgress()
  /// For a text index: the version of the terms in its entries, as `TextAnalyzer.version`.
  var termVersion: String?

  init(number: UInt64, definition: IndexDefinition, state: State) {
    self.number = number
    self.definition = definition
    self.state = state
    if definition.textLanguage != nil { termVersion = TextAnalyzer.version ?? "" }
  }

  /// Whether its entries contain other terms than today's analyzer finds, so that it must be built again. If
  /// the libraries of the analyzer are missing, the index stays as it is, and no search uses it.
  var isStale: Bool { termVersion != nil && termVersion != TextAnalyzer.version }

  /// Whether it is stale and can be built again.
  var mustBeReplaced: Bool { isStale && state != .removing && TextAnalyzer.version != nil }

  /// The table that contains its entries.
  package var table: Table { definition.scope == .collection ? .compositeEntries : .groupEntries }

  /// Whether it is complete, and its entries can be scanned.
  package var isUsable: Bool { state == .ready && !isStale }

  /// Whether commits maintain it.
  var isMaintained: Bool { state == .building || state == .ready }

  init(number: UInt64, row: UnsafeRawBufferPointer) throws(StorageError) {
    var reader = IndexRowReader(row)
    guard let state = State(rawValue: UInt8(truncatingIfNeeded: try reader.number())) else {
      throw IndexRowReader.damage
    }
    self.init(number: number, definition: try reader.index(), state: state)
    progress = try reader.progress()
    if termVersion != nil { termVersion = String(decoding: try reader.text(), as: UTF8.self) }
  }

  var row: [UInt8] {
    var row = IndexRowWriter()
    row.append(UInt64(state.rawValue))
    row.append(definition)
    row.append(progress)
    if let termVersion { row.append(text: Array(termVersion.utf8)) }
    return row.bytes
  }
}

extension IndexDefinition {
  /// The form in which the entries of an index are stored: without `__name__`, which is implied at the end, and
  /// with every direction reversed if the name would descend.
  ///
  /// Scanning a stored index backward gives the reversed order, so a definition and its mirror share one stored
  /// form. Apply this only once: the implied name of a stored form always ascends.
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
      case .contains, .vector, .text: break
      }
    }
    return stored
  }
}

extension StoredIndex.State {
  /// The state in reports.
  package var reported: IndexReport.State {
    switch self {
    case .building: .building
    case .ready: .ready
    case .removing: .removing
    case .failed: .failed
    }
  }
}
