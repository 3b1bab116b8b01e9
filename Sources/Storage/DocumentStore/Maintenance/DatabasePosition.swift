import CXXHash
import KeyEncoding
package import KeyValue

/// The state of a database at one moment, as far as it must be known to store the changes after that moment; see
/// ``ChangedRows``.
package struct DatabasePosition: Hashable, Sendable {
  /// The lineage of the content; see ``MetaKey/incarnation``.
  package var incarnation: UInt64
  /// The version of the last commit.
  package var version: Int64
  /// The version at which the database was created or last cleared.
  package var created: Int64
  /// A hash of the declared indexes and the settings of fields, with the progress of the work on them.
  package var indexes: UInt64
  /// The highest collection number assigned.
  package var collectionNumber: UInt64
  /// The highest field number assigned.
  package var fieldNumber: UInt64

  private static let fieldCount = 6

  /// Reads the position of a snapshot. Cost: a few lookups, and one step per declared index.
  /// - Throws: ``StorageError`` if the read fails.
  package init(_ snapshot: any KeyValueSnapshot) throws(StorageError) {
    var reader = SnapshotReader(snapshot)
    incarnation = try reader.meta(.incarnation)
    version = try reader.lastVersion()
    created = Int64(bitPattern: try reader.meta(.created))
    collectionNumber = try reader.meta(.collectionNumber)
    fieldNumber = try reader.meta(.fieldNumber)
    var hash: UInt64 = 0
    for table in [Table.indexes, .fieldSettings] {
      let rows = try DatabaseContents.cursor(table, snapshot)
      while try rows.suffix() != nil {
        let (key, value) = (rows.cursor.key, rows.cursor.value)
        hash = XXH3_64bits_withSeed(key.baseAddress, key.count, hash)
        hash = XXH3_64bits_withSeed(value.baseAddress, value.count, hash)
        rows.consume()
      }
    }
    indexes = hash
  }

  /// Reads a position from its ``text``. Returns `nil` if the text has another form.
  package init?(text: some StringProtocol) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { UInt64($0, radix: 16) }
    let numbers = parts.compactMap { $0 }
    guard parts.count == Self.fieldCount, numbers.count == parts.count else { return nil }
    incarnation = numbers[0]
    version = Int64(bitPattern: numbers[1])
    created = Int64(bitPattern: numbers[2])
    indexes = numbers[3]
    collectionNumber = numbers[4]
    fieldNumber = numbers[5]
  }

  /// The position as text without spaces: hexadecimal numbers with colons in between.
  package var text: String {
    let numbers = [
      incarnation, UInt64(bitPattern: version), UInt64(bitPattern: created), indexes, collectionNumber, fieldNumber,
    ]
    return numbers.map { String($0, radix: 16) }.joined(separator: ":")
  }

  /// Whether two databases have the same rows, if one is a copy of the other that only has another incarnation.
  package func isSameContent(as other: DatabasePosition) -> Bool {
    var other = other
    other.incarnation = incarnation
    return self == other
  }
}
