import DocumentModel
import KeyEncoding
import KeyValue
import WireFormat

/// Checks of declared indexes: every document has its entries in each complete index, and no other entries exist.
extension DatabaseCheck {
  /// Reads the rows that describe indexes. Returns whether they are readable.
  mutating func checkIndexes() throws(StorageError) -> Bool {
    do throws(StorageError) {
      catalog = try IndexCatalog(&reader)
    } catch {
      guard case .corruption(let path, let detail) = error else { throw error }
      report.add("\(path): \(detail)")
      return false
    }
    let highest = try reader.meta(.indexNumber)
    for index in catalog.indexes where index.number > highest {
      report.add("index \(index.definition.text): number \(index.number) is above the highest assigned, \(highest)")
    }
    return true
  }

  /// Returns the indexing whose entries must all exist for a collection ID.
  mutating func completeIndexing(_ id: ArraySlice<UInt8>) -> CollectionIndexing? {
    if catalog.generation == 0 { return nil }
    let id = Array(id)
    if let known = complete[id] { return known }
    var settings = catalog.settings.filter { $0.isForAllCollections || $0.collectionID == id }
    for index in settings.indices where settings[index].state != .settled { settings[index].entries = [] }
    let indexes = catalog.indexes.filter { $0.isUsable && $0.definition.collectionID.utf8.elementsEqual(id) }
    let indexing = CollectionIndexing(rules: settings.isEmpty ? nil : FieldRules(settings), maintained: indexes)
    if complete.count >= 1 << 12 { complete.removeAll() }
    complete[id] = indexing
    return indexing
  }

  /// Returns whether a required entry exists, and reports a problem if it does not.
  mutating func hasComposite(
    _ entry: IndexChanges.CompositeEntry, _ changes: IndexChanges, collection: UInt64, _ path: ResourcePath,
    _ idCode: UnsafeRawBufferPointer, _ name: String
  ) throws(StorageError) -> Bool {
    key.begin(entry.table)
    key.append(number: entry.index)
    if entry.table == .compositeEntries { key.append(number: collection) }
    key.append(raw: changes.bytes[entry.code])
    let count = key.bytes.count
    if entry.table == .compositeEntries {
      key.append(raw: idCode)
    } else {
      key.append(path: path.appending(Self.id(idCode) ?? []))
    }
    let index = catalog.indexes.first { $0.number == entry.index }?.definition.text ?? ""
    guard let row = try value(key) else {
      report.add("\(name): no entry in index \(index)")
      return false
    }
    var rest = row
    if OrderedCode.takeNumber(&rest) != UInt64(key.bytes.count - count) || !rest.isEmpty {
      report.add("\(name): its entry in index \(index) has a wrong name length")
    }
    return true
  }

  /// Compares the number of entries in each index with the number that the documents require, and finds extra entries.
  mutating func checkCompositeEntries(_ expected: [UInt64: Int]) throws(StorageError) {
    for table in [Table.compositeEntries, .groupEntries] {
      var found: [UInt64: Int] = [:]
      try forEach(table) { (check, code, _) throws(StorageError) in
        var rest = code
        guard let number = OrderedCode.takeNumber(&rest) else {
          return check.report.add("\(table): malformed key")
        }
        found[number, default: 0] += 1
        check.report.indexEntries += 1
      }
      for (number, count) in found.sorted(by: { $0.key < $1.key }) {
        guard let index = catalog.indexes.first(where: { $0.number == number && $0.table == table }) else {
          report.add("\(table): \(count) entries of an index that does not exist")
          continue
        }
        let mayBeLeftOver = index.state == .removing || index.state == .failed || index.isStale
        if !mayBeLeftOver, index.state == .building || count != expected[number] { try checkEntries(of: index) }
      }
    }
  }

  /// Reports entries of an index that no document has.
  private mutating func checkEntries(of index: StoredIndex) throws(StorageError) {
    try forEach(index.table) { (check, code, row) throws(StorageError) in
      var rest = code
      guard OrderedCode.takeNumber(&rest) == index.number else { return }
      if try !check.hasDocument(for: rest, row, index) {
        check.report.add("\(index.table): an entry of index \(index.definition.text) that no document has")
      }
    }
  }

  private mutating func hasDocument(
    for entry: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer, _ index: StoredIndex
  ) throws(StorageError) -> Bool {
    var (rest, row) = (entry, row)
    var collection: UInt64?
    if index.table == .compositeEntries {
      collection = OrderedCode.takeNumber(&rest)
      if collection == nil { return false }
    }
    guard let nameCount = OrderedCode.takeNumber(&row), nameCount <= rest.count else { return false }
    let split = rest.count - Int(nameCount)
    let code = UnsafeRawBufferPointer(rebasing: rest[..<split])
    var name = UnsafeRawBufferPointer(rebasing: rest[split...])
    let document: StoredDocument?
    do throws(StorageError) {
      if let collection {
        guard let id = Self.id(name) else { return false }
        document = try reader.document(id, in: collection)
      } else {
        var path = ResourcePath.root
        while !name.isEmpty {
          var segment: [UInt8] = []
          guard OrderedCode.take(segment: &name, into: &segment) else { return false }
          path = path.appending(segment)
        }
        guard let key = DocumentKey(path) else { return false }
        document = try reader.document(key)
      }
    } catch {
      // The damaged document was already reported.
      guard case .corruption = error else { throw error }
      return true
    }
    guard let document else { return false }
    var bytes: [UInt8] = []
    guard let codes = try? index.codes(of: EncodedMap(documentFields: document.fields), into: &bytes) else {
      return true
    }
    return codes.contains { bytes[$0].elementsEqual(code) }
  }
}
