package import KeyValue
import KeyEncoding

/// The rows that show where a commit ends among the operations of a group, which one write transaction stores.
///
/// ``CommitWriter`` writes the changes of the commits one after the other. The rows in the change log are the last of
/// each change, and marks and IDs are the last of their commit. The rows that a group writes once follow all commits; see
/// ``DocumentDatabase/endGroup(in:)``.
package enum CommitGroup {
  /// The meaning of a row for the commit that wrote it.
  package enum Row: Equatable, Sendable {
    /// The end of a change by the commit of this version.
    case change(version: Int64)
    /// The mark or the ID of the commit whose changes precede it; see ``CommitRequest/mark`` and ``CommitRequest/id``.
    case mark

    /// Returns `nil` for the key of any other row.
    package init?(key: UnsafeRawBufferPointer) {
      guard let table = key.first.flatMap(Table.init) else { return nil }
      var rest = UnsafeRawBufferPointer(rebasing: key.dropFirst())
      switch table {
      case .meta:
        guard key.elementsEqual(CommitGroup.markKey) else { return nil }
        self = .mark
      case .changeLog:
        guard rest.count > 8 else { return nil }
        self = .change(version: OrderedCode.version(at: 0, of: rest))
      case .collectionChanges:
        guard OrderedCode.takeNumber(&rest) != nil, rest.count > 8 else { return nil }
        self = .change(version: OrderedCode.version(at: 0, of: rest))
      case .recentCommits: self = .mark
      default: return nil
      }
    }
  }

  private static let markKey: [UInt8] = {
    var key = StorageKey()
    key.begin(.lastMark)
    return key.bytes
  }()
}

extension DocumentDatabase {
  /// Writes the rows that a group of commits writes once, after the first commits of a group were stored without the
  /// others. The bytes of the documents are counted again when the database is opened.
  ///
  /// Cost: one step per change of these commits.
  /// - Throws: ``StorageError`` if the store cannot be read or written.
  package static func endGroup(in store: any KeyValueStore) throws(StorageError) {
    try store.write { (transaction) throws(StorageError) in
      var reader = SnapshotReader(transaction)
      var last = try reader.lastVersion()
      let scan = try ChangeLogIterator(transaction, after: last)
      var touched: [UInt64: Int64] = [:]
      var count: UInt64 = 0
      while let row = try scan.next() {
        touched[row.collection] = row.version
        last = row.version
        count += 1
      }
      guard count > 0 else { return }
      count += try reader.meta(.changeLogCount)
      var catalog = CatalogWriter()
      for (number, version) in touched {
        try catalog.setLastChange(reader.collectionPath(number), number: number, version: version, transaction)
      }
      try transaction.put(.lastVersion, UInt64(bitPattern: last))
      try transaction.put(.changeLogCount, count)
    }
  }
}
