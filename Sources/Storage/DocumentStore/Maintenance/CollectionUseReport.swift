package import DocumentModel
import KeyEncoding
package import KeyValue

/// The use of storage by the collections of a database.
package struct CollectionUseReport: Sendable {
  /// The rows, the largest first.
  package private(set) var rows: [(name: String, use: CollectionUse)] = []
  /// The collections beyond ``CollectionUseLimits/rowsMax`` rows.
  package private(set) var others = CollectionUse()

  private let choice: CollectionChoice
  private var numbers: [String: Int] = [:]
  private var key = StorageKey()

  /// Counts the rows of a database. Calls `progress` with the number of rows read so far.
  ///
  /// Reads are split over several snapshots, so that a long count does not keep the file from reusing space. Commits
  /// during the count are partly included. Cost: reads every row of the counted collections. Memory: one entry for each
  /// row of the result.
  /// - Throws: ``StorageError`` if a read fails or a row is malformed.
  package init(
    _ store: any KeyValueStore, _ choice: CollectionChoice = CollectionChoice(), progress: (Int) -> Void = { _ in }
  ) throws(StorageError) {
    self.choice = choice
    var rowsRead = 0
    for table in [Table.documents, .history] + Table.entryTables {
      var place: [UInt8]? = [table.rawValue]
      while let start = place {
        let snapshot = try store.snapshot()
        defer { snapshot.end() }
        place = try count(table, from: start, snapshot)
        rowsRead += CollectionUseLimits.rowsPerSnapshot
        progress(rowsRead)
      }
    }
    rows.sort { ($1.use.bytes, $0.name) < ($0.use.bytes, $1.name) }
  }

  /// Counts a part of a table. Returns the key to continue from, or `nil` at the end of the table.
  private mutating func count(
    _ table: Table, from start: [UInt8], _ snapshot: any KeyValueSnapshot
  ) throws(StorageError) -> [UInt8]? {
    let cursor = try snapshot.makeCursor()
    key.begin(raw: start)
    var isThere = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    var latest: (number: UInt64, row: Int?)?
    for _ in 0..<CollectionUseLimits.rowsPerSnapshot {
      guard isThere, cursor.key.first == table.rawValue else { return nil }
      let place = try place(table, cursor)
      let row: Int?
      if let number = place.collection, let latest, latest.number == number {
        row = latest.row
      } else {
        row = try self.row(place, cursor, snapshot)
        if let number = place.collection { latest = (number, row) }
      }
      if let row {
        add(table, cursor.key.count + cursor.value.count, to: row)
        isThere = try cursor.next()
      } else if place.collection != nil {
        // All rows of this collection that follow are not counted either.
        key.begin(raw: Array(cursor.key.prefix(place.prefixCount)))
        key.becomeUpperBound()
        isThere = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
      } else {
        isThere = try cursor.next()
      }
    }
    guard isThere, cursor.key.first == table.rawValue else { return nil }
    return Array(cursor.key)
  }

  /// The collection to which a row belongs.
  private struct Place {
    /// `nil` for an entry of a collection group, whose key ends in the path of the document.
    var collection: UInt64?
    /// The length of the key up to and including the number of the collection, in bytes.
    var prefixCount: Int
  }

  private func place(_ table: Table, _ cursor: any KeyValueCursor) throws(StorageError) -> Place {
    var rest = UnsafeRawBufferPointer(rebasing: cursor.key.dropFirst())
    if table == .groupEntries { return Place(collection: nil, prefixCount: 0) }
    if table == .compositeEntries, OrderedCode.takeNumber(&rest) == nil { throw Self.malformed(table) }
    guard let number = OrderedCode.takeNumber(&rest) else { throw Self.malformed(table) }
    return Place(collection: number, prefixCount: cursor.key.count - rest.count)
  }

  private mutating func row(
    _ place: Place, _ cursor: any KeyValueCursor, _ snapshot: any KeyValueSnapshot
  ) throws(StorageError) -> Int? {
    if let number = place.collection {
      var reader = SnapshotReader(snapshot)
      return row(of: try reader.collectionPath(number))
    }
    var length = cursor.value
    guard let count = OrderedCode.takeNumber(&length), count < cursor.key.count,
      let path = NameCode.decode(Array(cursor.key.suffix(Int(count)))), let key = DocumentKey(path)
    else { throw Self.malformed(.groupEntries) }
    return row(of: key.collection)
  }

  /// Returns the index of a collection's row, that of the first excess row if there are too many, or `nil` if the
  /// collection is not counted.
  private mutating func row(of collection: ResourcePath) -> Int? {
    guard let name = choice.name(of: collection) else { return nil }
    if let number = numbers[name] { return number }
    guard rows.count < CollectionUseLimits.rowsMax else { return rows.count }
    numbers[name] = rows.count
    rows.append((name, CollectionUse()))
    return rows.count - 1
  }

  private mutating func add(_ table: Table, _ bytes: Int, to row: Int) {
    if row < rows.count { rows[row].use.add(table, bytes) } else { others.add(table, bytes) }
  }

  private static func malformed(_ table: Table) -> StorageError {
    .corruption(path: "\(table)", detail: "a key names no collection")
  }
}

/// Limits of ``CollectionUseReport``.
package enum CollectionUseLimits {
  /// The most rows of a result. Collections beyond them are counted together.
  package static let rowsMax = 10_000
  /// The most rows of a database that are read from one snapshot.
  package static let rowsPerSnapshot = 100_000
}

extension CollectionUse {
  fileprivate mutating func add(_ table: Table, _ bytes: Int) {
    switch table {
    case .documents:
      documents += 1
      documentBytes += bytes
    case .history:
      history += 1
      historyBytes += bytes
    default:
      indexEntries += 1
      indexBytes += bytes
    }
  }
}
