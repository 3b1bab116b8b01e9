import DocumentModel
import KeyEncoding
import KeyValue
import WireFormat

/// The limits of one batch of background work on indexes. A batch is one write transaction, so commits do not wait
/// long.
package struct IndexBatch: Sendable {
  /// The most documents read.
  package var documentsMax: Int
  /// The most bytes of their fields.
  package var bytesMax = 2 << 20
  /// The most entries deleted.
  package var entriesMax: Int

  /// Creates limits. The defaults allow about ten milliseconds of work.
  package init(documentsMax: Int = 500, entriesMax: Int = 2000) {
    self.documentsMax = max(documentsMax, 1)
    self.entriesMax = max(entriesMax, 1)
  }
}

/// Adds the entries of new indexes for existing documents, and deletes the entries of removed indexes, in batches.
///
/// Every commit maintains an index from its creation on, and each batch reads documents as they are at that time.
/// So when all batches are done, each document was either read by a batch or changed by a commit after the
/// creation. The progress is written to the index's row with each batch, so work resumes there after a crash.
struct IndexBuilder {
  private let batch: IndexBatch
  private let transaction: any KeyValueTransaction
  private let catalog: IndexCatalog
  private var reader: SnapshotReader

  /// Runs one batch of the work that is due. Returns whether more may be due.
  static func advance(
    _ batch: IndexBatch, _ writer: inout CommitWriter, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> Bool {
    var reader = SnapshotReader(transaction)
    let catalog = try IndexCatalog(&reader)
    var builder = IndexBuilder(batch: batch, transaction: transaction, catalog: catalog, reader: reader)
    return try builder.advance(&writer)
  }

  /// Whether any work is due.
  static func isDue(_ catalog: IndexCatalog) -> Bool {
    catalog.indexes.contains { $0.state == .building || $0.state == .removing || $0.mustBeReplaced }
      || catalog.settings.contains { $0.state != .settled || $0.isUndeclared }
  }

  private mutating func advance(_ writer: inout CommitWriter) throws(StorageError) -> Bool {
    if catalog.indexes.contains(where: \.mustBeReplaced) {
      try replaceStale()
    } else if let setting = catalog.settings.first(where: { $0.state == .clearing }) {
      try clear(setting)
    } else if let index = catalog.indexes.first(where: { $0.state == .removing }) {
      try remove(index)
    } else if let setting = catalog.settings.first(where: { $0.state == .filling }) {
      try fill(setting, &writer)
    } else if let index = catalog.indexes.first(where: { $0.state == .building }) {
      try build(index, &writer)
    } else if catalog.settings.contains(where: \.isUndeclared) {
      // Remove lifted settings last: a setting still in progress must not take over fields before its own entries
      // are complete.
      for setting in catalog.settings where setting.isUndeclared {
        try transaction.remove(FieldSetting.key(setting.collectionID, setting.path))
      }
      try raiseGeneration()
    } else {
      return false
    }
    return true
  }

  private func raiseGeneration() throws(StorageError) {
    try transaction.put(.indexGeneration, catalog.generation + 1)
  }

  /// Starts to build text indexes again whose entries contain the terms of another version of the analyzer.
  private mutating func replaceStale() throws(StorageError) {
    var number = try reader.meta(.indexNumber)
    for var index in catalog.indexes where index.mustBeReplaced {
      index.state = .removing
      try transaction.put(index)
      number += 1
      try transaction.put(StoredIndex(number: number, definition: index.definition, state: .building))
    }
    try transaction.put(.indexNumber, number)
    try raiseGeneration()
  }

  // MARK: Deleting

  private func remove(_ index: StoredIndex) throws(StorageError) {
    var key = StorageKey()
    key.begin(index.table)
    key.append(number: index.number)
    guard try removeEntries(under: key) < batch.entriesMax else { return }
    key.begin(.indexes)
    key.append(number: index.number)
    try transaction.remove(key)
    try raiseGeneration()
  }

  /// Removes at most one batch of the entries that start with a key. Returns how many it removed.
  private func removeEntries(under prefix: StorageKey, atMost countMax: Int? = nil) throws(StorageError) -> Int {
    let rows = PrefixCursor(try transaction.makeCursor(), prefix: prefix.bytes)
    try rows.seek(prefix)
    var upper = prefix
    upper.becomeUpperBound()
    var count = 0
    while let suffix = try rows.suffix() {
      if count == countMax ?? batch.entriesMax {
        upper = prefix
        upper.append(raw: suffix)
        break
      }
      count += 1
      rows.consume()
    }
    guard count > 0 else { return 0 }
    return try prefix.withBytes { (lower) throws(StorageError) in
      try upper.withBytes { (upper) throws(StorageError) in try transaction.removeRange(from: lower, to: upper) }
    }
  }

  /// Deletes the entries that a setting governs. The progress is a ``ClearPosition``.
  private mutating func clear(_ setting: FieldSetting) throws(StorageError) {
    var setting = setting
    var left = batch.entriesMax
    var next = try ClearPosition(setting.progress.position)
    var collections = CollectionNumbers(
      of: setting.collectionID, isForAll: setting.isForAllCollections, reader.snapshot)
    while let number = try collections.next(from: next.collection) {
      if number != next.collection { next = ClearPosition(collection: number) }
      let path = try reader.collectionPath(number)
      if let rules = catalog.collection(path.lastSegment)?.rules {
        while let table = next.table {
          while let field = try nextField(table, number, from: next.field) {
            guard left > 0 else {
              setting.progress.position = next.bytes
              return try transaction.put(setting)
            }
            left -= 1
            next.field = field
            let place = rules.place(of: try reader.fieldPath(field))
            if rules.setting(at: place)?.isSamePlace(as: setting) == true {
              var key = StorageKey()
              key.begin(table)
              key.append(number: number)
              key.append(number: field)
              let removed = try removeEntries(under: key, atMost: left)
              left -= removed
              if left <= 0 { continue }
            }
            next.field = field + 1
          }
          next.advanceTable()
        }
      }
      next = ClearPosition(collection: number + 1)
    }
    setting.state = setting.entries.isEmpty ? .settled : .filling
    setting.progress = IndexProgress()
    try transaction.put(setting)
    try raiseGeneration()
  }

  /// Returns the first field at or above a number that has entries in a collection.
  private func nextField(_ table: Table, _ collection: UInt64, from field: UInt64) throws(StorageError) -> UInt64? {
    var key = StorageKey()
    key.begin(table)
    key.append(number: collection)
    let rows = PrefixCursor(try transaction.makeCursor(), prefix: key.bytes)
    key.append(number: field)
    try rows.seek(key)
    guard var suffix = try rows.suffix() else { return nil }
    guard let found = OrderedCode.takeNumber(&suffix) else {
      throw .corruption(path: "\(table)", detail: "an entry has no field number")
    }
    return found
  }

  // MARK: Adding

  private mutating func fill(_ setting: FieldSetting, _ writer: inout CommitWriter) throws(StorageError) {
    var progress = setting.progress
    var rules: [[UInt8]: FieldRules] = [:]
    var changes: [Change] = []
    let isDone = try walk(setting.collectionID, isForAll: setting.isForAllCollections, &progress) {
      (builder, key, number, fields) throws(StorageError) in
      let id = Array(key.collection.lastSegment)
      let only = rules[id] ?? builder.rules(of: id, only: setting)
      rules[id] = only
      do throws(WireError) {
        let indexing = CollectionIndexing(rules: only, maintained: [])
        changes.append(Change(key, number, try IndexChanges(from: nil, to: fields, indexing: indexing)))
      } catch { throw .corruption(path: "documents", detail: "\(key): \(error)") }
    }
    try write(changes, &writer)
    var setting = setting
    setting.progress = isDone ? IndexProgress() : progress
    if isDone { setting.state = .settled }
    try transaction.put(setting)
    if isDone { try raiseGeneration() }
  }

  /// Returns rules by which a collection has only the entries that one setting governs.
  private func rules(of id: [UInt8], only setting: FieldSetting) -> FieldRules {
    var settings = catalog.settings.filter { $0.collectionID == id || $0.isForAllCollections }
    for index in settings.indices where !settings[index].isSamePlace(as: setting) { settings[index].entries = [] }
    if !settings.contains(where: \.path.isAllFields) {
      settings.append(FieldSetting(collectionID: id, path: FieldIndexing.allFields, entries: [], expires: false))
    }
    return FieldRules(settings)
  }

  /// Builds an index, together with other indexes of the same collections that have the same progress.
  private mutating func build(_ first: StoredIndex, _ writer: inout CommitWriter) throws(StorageError) {
    let id = Array(first.definition.collectionID.utf8)
    var indexes = catalog.indexes.filter {
      $0.state == .building && $0.progress == first.progress && $0.definition.collectionID.utf8.elementsEqual(id)
    }
    var progress = first.progress
    var changes: [Change] = []
    let isDone = try walk(id, isForAll: false, &progress) { (_, key, number, fields) throws(StorageError) in
      for index in indexes.indices where indexes[index].state == .building {
        let indexing = CollectionIndexing(rules: .nothing, maintained: [indexes[index]])
        do throws(WireError) {
          changes.append(Change(key, number, try IndexChanges(from: nil, to: fields, indexing: indexing)))
        } catch {
          guard case .model = error else { throw .corruption(path: "documents", detail: "\(key): \(error)") }
          indexes[index].state = .failed
        }
      }
    }
    try write(changes, &writer)
    var isChanged = isDone
    for var index in indexes {
      index.progress = progress
      if index.state == .failed { isChanged = true } else if isDone { index.state = .ready }
      try transaction.put(index)
    }
    if isChanged { try raiseGeneration() }
  }

  private struct Change {
    var key: DocumentKey
    var collection: UInt64
    var index: IndexChanges

    init(_ key: DocumentKey, _ collection: UInt64, _ index: IndexChanges) {
      self.key = key
      self.collection = collection
      self.index = index
    }
  }

  private func write(_ changes: [Change], _ writer: inout CommitWriter) throws(StorageError) {
    var puts = SortedPuts()
    for change in changes {
      try writer.stage(change.index, of: change.key, collection: change.collection, into: &puts, transaction)
    }
    try puts.write(transaction)
  }

  /// Calls `body` for a batch of documents, starting after the position in `progress`. Returns whether all are done.
  private mutating func walk(
    _ id: [UInt8], isForAll: Bool, _ progress: inout IndexProgress,
    _ body: (IndexBuilder, DocumentKey, UInt64, EncodedMap) throws(StorageError) -> Void
  ) throws(StorageError) -> Bool {
    var documents = 0
    var bytes = 0
    var collections = CollectionNumbers(of: id, isForAll: isForAll, reader.snapshot)
    var next = try BackfillPosition(progress.position)
    while let number = try collections.next(from: next.collection) {
      if number != next.collection { next = BackfillPosition(collection: number) }
      let path = try reader.collectionPath(number)
      let start: DocumentIterator.Start = next.id.isEmpty ? .beginning : .after(next.id)
      var scan = try DocumentIterator(transaction, collection: number, from: start)
      while documents < batch.documentsMax, bytes < batch.bytesMax, let document = try scan.next() {
        var id: [UInt8] = []
        scan.appendID(to: &id)
        guard let key = DocumentKey(path.appending(id)) else {
          throw .corruption(path: "documents", detail: "a document has an invalid ID")
        }
        try body(self, key, number, EncodedMap(documentFields: document.fields))
        documents += 1
        bytes += document.fields.count
        next.id = id
      }
      guard documents < batch.documentsMax, bytes < batch.bytesMax else {
        progress.documents += UInt64(documents)
        progress.position = next.bytes
        return false
      }
      next = BackfillPosition(collection: number + 1)
    }
    progress.documents += UInt64(documents)
    progress.position = next.bytes
    return true
  }
}

extension FieldRules {
  /// Rules that write no entries.
  static let nothing = FieldRules([
    FieldSetting(collectionID: [], path: FieldIndexing.allFields, entries: [], expires: false)
  ])
}

/// An iterator over the numbers of the collections with an ID, or of all collections, in ascending order.
private struct CollectionNumbers {
  private let snapshot: any KeyValueSnapshot
  private var key = StorageKey()

  init(of id: [UInt8], isForAll: Bool, _ snapshot: any KeyValueSnapshot) {
    self.snapshot = snapshot
    if isForAll {
      key.begin(.collectionPaths)
    } else {
      key.begin(.collectionGroups)
      key.append(segment: id)
    }
  }

  /// Returns the first number that is not below `number`.
  mutating func next(from number: UInt64) throws(StorageError) -> UInt64? {
    let count = key.bytes.count
    defer { key.truncate(to: count) }
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    key.append(number: number)
    try rows.seek(key)
    guard var suffix = try rows.suffix() else { return nil }
    guard let found = OrderedCode.takeNumber(&suffix) else {
      throw .corruption(path: "collectionGroups", detail: "a key has no collection number")
    }
    return found
  }
}

/// The position of a walk through documents: after an ID in a collection, or at the collection's start if the ID is
/// empty.
private struct BackfillPosition {
  var collection: UInt64
  var id: [UInt8] = []

  init(collection: UInt64) { self.collection = collection }

  init(_ bytes: [UInt8]) throws(StorageError) {
    var decoded: (UInt64, [UInt8])? = (0, [])
    if !bytes.isEmpty {
      decoded = bytes.withUnsafeBytes { bytes in
        var rest = bytes
        var id: [UInt8] = []
        guard let number = OrderedCode.takeNumber(&rest) else { return nil }
        guard rest.isEmpty || OrderedCode.decode(lastID: rest, into: &id) else { return nil }
        return (number, id)
      }
    }
    guard let decoded else { throw IndexRowReader.damage }
    (collection, id) = decoded
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    OrderedCode.append(number: collection, to: &bytes)
    if !id.isEmpty { OrderedCode.append(lastID: id, to: &bytes) }
    return bytes
  }
}

/// The position of the deletion of a field's entries: collection number, table, field number.
private struct ClearPosition {
  private static let tables = [Table.ascendingEntries, .containmentEntries]

  var collection: UInt64
  var field: UInt64 = 0
  private var tableIndex: UInt64 = 0

  init(collection: UInt64) { self.collection = collection }

  init(_ bytes: [UInt8]) throws(StorageError) {
    self.init(collection: 0)
    guard !bytes.isEmpty else { return }
    let numbers = bytes.withUnsafeBytes { bytes in
      var rest = bytes
      return (0..<3).compactMap { _ in OrderedCode.takeNumber(&rest) }
    }
    guard numbers.count == 3 else { throw IndexRowReader.damage }
    collection = numbers[0]
    tableIndex = numbers[1]
    field = numbers[2]
  }

  /// The table being cleared, or `nil` after the last one.
  var table: Table? { tableIndex < Self.tables.count ? Self.tables[Int(tableIndex)] : nil }

  mutating func advanceTable() {
    tableIndex += 1
    field = 0
  }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for number in [collection, tableIndex, field] { OrderedCode.append(number: number, to: &bytes) }
    return bytes
  }
}
