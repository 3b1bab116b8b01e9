import DocumentModel
import KeyEncoding
package import KeyValue
import WireFormat

/// A check that the tables of one database are consistent.
///
/// - The rows of collections, collection groups and paths agree, and so do the rows of fields and their names.
/// - Every document and before-image has a valid checksum, valid fields and possible versions.
/// - Every document has all its index entries, and no other entries exist.
/// - The change log and the changes by collection have the same rows.
/// - Every outcome of a recent commit is readable, in the period of its version.
/// - No number in the meta rows is below the highest one used.
///
/// Works on one snapshot in bounded memory: it looks up every required row and compares counts. It inspects entries
/// one by one only if there are too many. Cost: reads everything, plus one lookup per index entry.
package struct DatabaseCheck {
  /// The counts of rows read, and the problems found.
  package struct Report: Equatable, Sendable {
    package var documents = 0
    package var collections = 0
    package var indexEntries = 0
    /// The number of before-images.
    package var history = 0
    /// The number of changes in the log.
    package var changes = 0
    /// Descriptions of the first ``problemsMax`` problems.
    package var problems: [String] = []
    /// The number of all problems.
    package var problemCount = 0

    /// The most problems that are described.
    package static let problemsMax = 100

    mutating func add(_ problem: String) {
      problemCount += 1
      if problems.count < Self.problemsMax { problems.append(problem) }
    }
  }

  let snapshot: any KeyValueSnapshot
  let progress: (Int) -> Void
  var reader: SnapshotReader
  var report = Report()
  var key = StorageKey()
  private var rowsRead = 0
  private var lastVersion: Int64 = 0
  /// The last collection looked up. Rows are ordered by collection.
  private var latest: (number: UInt64, path: ResourcePath, lastChange: Int64)?
  private var fieldNumbers: [FieldName: UInt64] = [:]
  private var containment: [[UInt8]] = []
  var catalog = IndexCatalog.none
  /// The indexing whose entries must exist, by collection ID. Entries still being built or removed may exist.
  var complete: [[UInt8]: CollectionIndexing] = [:]

  private struct FieldName: Hashable {
    var parent: UInt64
    var name: [UInt8]
  }

  /// The most field numbers cached, which limits the memory for a database with many field names.
  private static let fieldsMax = 1 << 16
  private static let progressStep = 16_384

  private init(_ snapshot: any KeyValueSnapshot, progress: @escaping (Int) -> Void) {
    self.snapshot = snapshot
    self.progress = progress
    reader = SnapshotReader(snapshot)
  }

  /// Checks everything. Calls `progress` with the number of rows read so far, every 16,384 rows.
  /// - Throws: ``StorageError`` if the engine fails; the problems found until then are lost.
  package static func run(
    _ snapshot: any KeyValueSnapshot, progress: @escaping (Int) -> Void = { _ in }
  ) throws(StorageError) -> Report {
    var check = DatabaseCheck(snapshot, progress: progress)
    // The process that made the store died before it wrote the first row. The next one to open the store writes it.
    guard try snapshot.makeCursor().seek(atOrAfter: UnsafeRawBufferPointer(start: nil, count: 0)) else {
      return check.report
    }
    guard try check.checkMeta(), try check.checkIndexes() else { return check.report }
    try check.checkUse()
    try check.checkCollections()
    try check.checkFields()
    let entries = try check.checkDocuments()
    try check.checkEntries(entries)
    try check.checkCompositeEntries(entries.composites)
    try check.checkHistory()
    try check.checkChanges()
    try check.checkRecentCommits()
    try check.checkTables()
    return check.report
  }

  /// Calls `body` with each row of a table: the key after the table's number, and the value.
  mutating func forEach(
    _ table: Table,
    _ body: (inout DatabaseCheck, UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(StorageError) -> Void
  ) throws(StorageError) {
    let rows = try DatabaseContents.cursor(table, snapshot)
    while let suffix = try rows.suffix() {
      try body(&self, suffix, rows.cursor.value)
      rows.consume()
      rowsRead += 1
      if rowsRead.isMultiple(of: Self.progressStep) { progress(rowsRead) }
    }
  }

  func value(_ key: borrowing StorageKey) throws(StorageError) -> UnsafeRawBufferPointer? {
    try key.withBytes { (key) throws(StorageError) in try snapshot.value(for: key) }
  }

  // MARK: Meta

  private mutating func checkMeta() throws(StorageError) -> Bool {
    do throws(StorageError) {
      let format = try reader.meta(.format)
      guard (DocumentStoreFormat.plain...DocumentStoreFormat.current).contains(format) else {
        report.add("meta: format \(format) is not supported, only up to \(DocumentStoreFormat.current)")
        return false
      }
      lastVersion = try reader.lastVersion()
      if try reader.meta(.incarnation) == 0 { report.add("meta: no incarnation") }
      if try Int64(bitPattern: reader.meta(.created)) > lastVersion {
        report.add("meta: created after the last commit")
      }
    } catch {
      guard case .corruption(_, let detail) = error else { throw error }
      report.add("meta: \(detail)")
      return false
    }
    return true
  }

  /// Reports a wrong sum of the documents' bytes.
  private mutating func checkUse() throws(StorageError) {
    guard let stored = try DocumentUse.stored(&reader) else { return }
    do throws(StorageError) {
      guard let counted = try DocumentUse.count(snapshot), counted != stored else { return }
      report.add("meta: the documents have \(counted) bytes, not \(stored)")
    } catch {
      // The check of the documents reports rows that are damaged.
      guard case .corruption = error else { throw error }
    }
  }

  /// Reports rows whose key starts with no table's number.
  private mutating func checkTables() throws(StorageError) {
    let cursor = try snapshot.makeCursor()
    var next: UInt8? = 0
    while let first = next {
      key.begin(raw: [first])
      let found = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
      guard found, let table = cursor.key.first else { return }
      if Table(rawValue: table) == nil { report.add("rows of an unknown table \(table)") }
      next = table == .max ? nil : table + 1
    }
  }

  // MARK: Catalog

  private mutating func checkCollections() throws(StorageError) {
    let highest = try reader.meta(.collectionNumber)
    var count = 0
    try forEach(.collections) { (check, code, row) throws(StorageError) in
      count += 1
      guard let path = NonemptyCollectionIterator.decode(code, below: .root), path.isCollection, row.count == 16 else {
        return check.report.add("collections: malformed row")
      }
      let collection = try SnapshotReader.decodeCollection(row)
      check.report.collections += 1
      if collection.number == 0 || collection.number > highest {
        check.report.add("collection \(path): number \(collection.number) is not in 1...\(highest)")
      }
      if collection.lastChange > check.lastVersion {
        check.report.add("collection \(path): changed after the last commit")
      }
      check.key.begin(.collectionPaths)
      check.key.append(number: collection.number)
      if try check.value(check.key)?.elementsEqual(path.bytes) != true {
        check.report.add("collection \(path): its number \(collection.number) names another path or no path")
      }
      check.key.begin(.collectionGroups)
      check.key.append(segment: path.lastSegment)
      check.key.append(number: collection.number)
      if try check.value(check.key) == nil { check.report.add("collection \(path): missing in its group") }
    }
    for table in [Table.collectionPaths, .collectionGroups] {
      let rows = try DatabaseContents.count(table, snapshot)
      if rows != count { report.add("\(table): \(rows) rows for \(count) collections") }
    }
  }

  private mutating func checkFields() throws(StorageError) {
    let highest = try reader.meta(.fieldNumber)
    var count = 0
    try forEach(.fields) { (check, code, row) throws(StorageError) in
      count += 1
      var name = code
      guard let parent = OrderedCode.takeNumber(&name), row.count == 8 else {
        return check.report.add("fields: malformed row")
      }
      let number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
      if number == 0 || number > highest || parent > highest {
        check.report.add(
          "field \(Self.text(name)): number \(number) or parent \(parent) is not in 1...\(highest)")
      }
      check.key.begin(.fieldNames)
      check.key.append(number: number)
      if try check.value(check.key)?.elementsEqual(code) != true {
        check.report.add("field \(Self.text(name)): its number \(number) names another field or no field")
      }
    }
    let names = try DatabaseContents.count(.fieldNames, snapshot)
    if names != count { report.add("fieldNames: \(names) rows for \(count) fields") }
  }

  private mutating func fieldNumber(_ parent: UInt64, _ name: ArraySlice<UInt8>) throws(StorageError) -> UInt64? {
    let field = FieldName(parent: parent, name: Array(name))
    if let number = fieldNumbers[field] { return number }
    key.begin(.fields)
    key.append(number: parent)
    key.append(raw: name)
    guard let row = try value(key), row.count == 8 else { return nil }
    let number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    if fieldNumbers.count >= Self.fieldsMax { fieldNumbers.removeAll(keepingCapacity: true) }
    fieldNumbers[field] = number
    return number
  }

  /// Returns the path and last change of the collection with a number, or `nil` if it does not exist.
  private mutating func collection(_ number: UInt64) throws(StorageError) -> (path: ResourcePath, lastChange: Int64)? {
    if let latest, latest.number == number { return (latest.path, latest.lastChange) }
    key.begin(.collectionPaths)
    key.append(number: number)
    guard let row = try value(key) else { return nil }
    let path = ResourcePath(uncheckedBytes: Array(row))
    guard let lastChange = try reader.collection(path)?.lastChange else { return nil }
    latest = (number, path, lastChange)
    return (path, lastChange)
  }

  // MARK: Documents and their entries

  /// The number of index entries by table.
  private struct EntryCounts: Equatable {
    var ascending = 0
    var containment = 0
    /// The counts of declared indexes, by index number.
    var composites: [UInt64: Int] = [:]
  }

  private mutating func checkDocuments() throws(StorageError) -> EntryCounts {
    var counts = EntryCounts()
    try forEach(.documents) { (check, code, row) throws(StorageError) in
      check.report.documents += 1
      var idCode = code
      guard let number = OrderedCode.takeNumber(&idCode), let id = Self.id(idCode) else {
        return check.report.add("documents: malformed key")
      }
      guard let collection = try check.collection(number) else {
        return check.report.add("document \(Self.text(id)): its collection \(number) does not exist")
      }
      let name = "document \(collection.path)/\(Self.text(id))"
      check.key.begin(.documents)
      check.key.append(raw: code)
      guard let document = check.document(row, key: check.key, name) else { return }
      if document.updateVersion > collection.lastChange {
        check.report.add("\(name): changed after its collection's last change")
      }
      let found = try check.checkEntries(of: document, idCode: idCode, collection: number, collection.path, name)
      counts.ascending += found.ascending
      counts.containment += found.containment
      counts.composites.merge(found.composites) { $0 + $1 }
    }
    return counts
  }

  /// Decodes a row and checks its versions; reports a problem and returns `nil` if it is damaged.
  private mutating func document(
    _ row: UnsafeRawBufferPointer, key: borrowing StorageKey, _ name: String
  ) -> StoredDocument? {
    var document: StoredDocument?
    key.bytes.withUnsafeBytes { key in
      do throws(CorruptDocument) {
        document = try StoredDocument(row: row, key: key)
      } catch { report.add("\(name): \(error.reason)") }
    }
    guard let document else { return nil }
    if document.createVersion > document.updateVersion || document.updateVersion > lastVersion {
      report.add("\(name): its versions are out of order")
    }
    return document
  }

  private mutating func checkEntries(
    of document: StoredDocument, idCode: UnsafeRawBufferPointer, collection: UInt64, _ path: ResourcePath,
    _ name: String
  ) throws(StorageError) -> EntryCounts {
    var counts = EntryCounts()
    let index: IndexChanges
    do throws(WireError) {
      index = try IndexChanges(
        from: nil, to: EncodedMap(documentFields: document.fields), indexing: completeIndexing(path.lastSegment))
    } catch {
      report.add("\(name): \(error.description)")
      return counts
    }
    var numbers: [UInt64] = []
    for field in index.fields {
      let parent = field.parent.map { numbers[$0] } ?? 0
      // A field without entries may have no number, and then its children have none either. Looking them up below 0
      // would find fields at the top of the document.
      let isParentUnnumbered = field.parent != nil && parent == 0
      numbers.append(isParentUnnumbered ? 0 : try fieldNumber(parent, index.bytes[field.name]) ?? 0)
    }
    containment.removeAll(keepingCapacity: true)
    for entry in index.entries {
      key.begin(entry.table)
      key.append(number: collection)
      key.append(number: numbers[entry.field])
      key.append(raw: index.bytes[entry.code])
      key.append(raw: idCode)
      let isThere = try value(key) != nil
      if numbers[entry.field] == 0 {
        report.add("\(name): its field \(Self.text(index.bytes[index.fields[entry.field].name])) has no number")
      } else if !isThere {
        report.add("\(name): no index entry for field \(Self.text(index.bytes[index.fields[entry.field].name]))")
      }
      if entry.table == .containmentEntries {
        // Equal elements share one entry.
        if isThere { containment.append(key.bytes) }
      } else if isThere {
        counts.ascending += 1
      }
    }
    counts.containment = containment.count < 2 ? containment.count : Set(containment).count
    for entry in index.composites {
      if try hasComposite(entry, index, collection: collection, path, idCode, name) {
        counts.composites[entry.index, default: 0] += 1
      }
    }
    return counts
  }

  /// Compares the number of entries with the number that the documents require, and finds extra entries.
  private mutating func checkEntries(_ expected: EntryCounts) throws(StorageError) {
    let found = EntryCounts(
      ascending: try DatabaseContents.count(.ascendingEntries, snapshot),
      containment: try DatabaseContents.count(.containmentEntries, snapshot), composites: expected.composites)
    report.indexEntries += found.ascending + found.containment
    // While entries are being changed to match new settings, there may be extra entries.
    guard found != expected, catalog.settings.allSatisfy({ $0.state == .settled }) else { return }
    for table in [Table.ascendingEntries, .containmentEntries] {
      try forEach(table) { (check, code, _) throws(StorageError) in
        if try !check.hasEntry(table, code) {
          check.report.add("\(table): an entry that no document has\(Self.owner(code).map { ": \($0)" } ?? "")")
        }
      }
    }
    if report.problemCount == 0 { report.add("index entries: \(found) instead of \(expected)") }
  }

  /// Returns whether the document that an entry refers to has that entry.
  private mutating func hasEntry(_ table: Table, _ code: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
    var rest = code
    guard let collection = OrderedCode.takeNumber(&rest), let field = OrderedCode.takeNumber(&rest),
      let path = try self.collection(collection)?.path
    else { return false }
    let valueStart = rest
    guard OrderedCode.skipValue(&rest) != nil else { return false }
    let value = UnsafeRawBufferPointer(rebasing: valueStart[..<(valueStart.count - rest.count)])
    key.begin(.documents)
    key.append(number: collection)
    key.append(raw: rest)
    guard let row = try self.value(key), row.count >= StoredDocument.headerBytes else { return false }
    let fields = UnsafeRawBufferPointer(rebasing: row[StoredDocument.headerBytes...])
    let indexing = completeIndexing(path.lastSegment)
    guard let index = try? IndexChanges(from: nil, to: EncodedMap(documentFields: fields), indexing: indexing) else {
      return false
    }
    var numbers: [UInt64] = []
    for indexed in index.fields {
      numbers.append(try fieldNumber(indexed.parent.map { numbers[$0] } ?? 0, index.bytes[indexed.name]) ?? 0)
    }
    return index.entries.contains { entry in
      entry.table == table && numbers[entry.field] == field && index.bytes[entry.code].elementsEqual(value)
    }
  }

  private static func owner(_ code: UnsafeRawBufferPointer) -> String? {
    var rest = code
    guard let collection = OrderedCode.takeNumber(&rest), let field = OrderedCode.takeNumber(&rest),
      OrderedCode.skipValue(&rest) != nil, let id = id(rest)
    else { return nil }
    return "document \(text(id)) of collection \(collection), field \(field)"
  }

  // MARK: The past

  private mutating func checkHistory() throws(StorageError) {
    let from = Int64(bitPattern: try reader.meta(.historyFrom))
    let logFrom = Int64(bitPattern: try reader.meta(.changeLogFrom))
    try forEach(.history) { (check, code, row) throws(StorageError) in
      check.report.history += 1
      var rest = code
      var id: [UInt8] = []
      guard let number = OrderedCode.takeNumber(&rest), OrderedCode.take(segment: &rest, into: &id), rest.count == 8,
        let version = OrderedCode.version(atEndOf: rest)
      else { return check.report.add("history: malformed key") }
      let name = "before-image of \(Self.text(id)) in collection \(number) at \(version)"
      if try check.collection(number) == nil { check.report.add("\(name): the collection does not exist") }
      if version > check.lastVersion { check.report.add("\(name): after the last commit") }
      if version <= from { check.report.add("\(name): older than the history") }
      if version > logFrom {
        check.key.begin(.collectionChanges)
        check.key.append(number: number)
        check.key.append(version: version)
        check.key.append(lastID: id)
        if try check.value(check.key) == nil { check.report.add("\(name): the change is not in the log") }
      }
      guard !row.isEmpty else { return }
      check.key.begin(.documents)
      check.key.append(number: number)
      check.key.append(lastID: id)
      guard let image = check.document(row, key: check.key, name) else { return }
      if image.updateVersion >= version { check.report.add("\(name): newer than the commit that replaced it") }
      do throws(WireError) {
        _ = try IndexChanges(from: nil, to: EncodedMap(documentFields: image.fields))
      } catch { check.report.add("\(name): \(error.description)") }
    }
  }

  private mutating func checkChanges() throws(StorageError) {
    let from = Int64(bitPattern: try reader.meta(.changeLogFrom))
    try forEach(.changeLog) { (check, code, row) throws(StorageError) in
      check.report.changes += 1
      guard code.count > 8, let kind = row.first, ChangeKind(rawValue: kind) != nil else {
        return check.report.add("changeLog: malformed row")
      }
      let version = OrderedCode.version(at: 0, of: code)
      var rest = UnsafeRawBufferPointer(rebasing: row[1...])
      guard let number = OrderedCode.takeNumber(&rest), let id = Self.id(rest) else {
        return check.report.add("changeLog: a row at \(version) has no document ID")
      }
      let name = "change of \(Self.text(id)) in collection \(number) at \(version)"
      if version > check.lastVersion { check.report.add("\(name): after the last commit") }
      if version <= from { check.report.add("\(name): older than the log") }
      check.key.begin(.collectionChanges)
      check.key.append(number: number)
      check.key.append(version: version)
      check.key.append(raw: rest)
      if try check.value(check.key)?.first != kind {
        check.report.add("\(name): missing from its collection's changes")
      }
    }
    let byCollection = try DatabaseContents.count(.collectionChanges, snapshot)
    if byCollection != report.changes {
      report.add("collectionChanges: \(byCollection) rows for \(report.changes) changes")
    }
    let noted = try reader.meta(.changeLogCount)
    if noted != UInt64(report.changes) {
      report.add("meta: changeLogCount is \(noted), but the log has \(report.changes)")
    }
  }

  private mutating func checkRecentCommits() throws(StorageError) {
    try forEach(.recentCommits) { (check, code, row) throws(StorageError) in
      guard let (period, outcome) = RecentCommits.decode(code, row) else {
        return check.report.add("recentCommits: malformed row")
      }
      let version = outcome.version.microseconds
      // A version is never before the commit's arrival.
      if RecentCommits.period(of: version) < period {
        check.report.add("recentCommits: a commit at \(version) is in the period \(period)")
      }
    }
  }

  // MARK: Texts

  static func id(_ code: UnsafeRawBufferPointer) -> [UInt8]? {
    var id: [UInt8] = []
    return OrderedCode.decode(lastID: code, into: &id) ? id : nil
  }

  static func text(_ bytes: some Sequence<UInt8>) -> String {
    "\"\(String(decoding: Array(bytes.prefix(200)), as: UTF8.self))\""
  }
}
