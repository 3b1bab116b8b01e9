package import DocumentModel
import KeyEncoding

/// Every table of a database, in the order of its keys. The numbers are on disk: never reuse or renumber one.
///
/// A storage key is the table's number followed by the parts named below, each in ``OrderedCode``; `id` parts stand
/// last and run to the end of the key.
package enum Table: UInt8, CaseIterable, Sendable {
  /// name → what one database knows of itself; see ``MetaKey``.
  case meta = 0x01
  /// collection number, document id → ``StoredDocument``. One collection's documents lie together in name order.
  case documents = 0x10
  /// collection path, segment by segment → collection number, version of its last change.
  case collections = 0x11
  /// collection id, collection number → nothing. Finds the collections of a group.
  case collectionGroups = 0x12
  /// collection number → collection path.
  case collectionPaths = 0x13
  /// number of the field around it (0 at the top), field name → field number.
  case fields = 0x14
  /// field number → number of the field around it, field name.
  case fieldNames = 0x15
  /// index number → ``StoredIndex``; number 0 → the whole configuration as it was declared. See ``IndexRow``.
  case indexes = 0x16
  /// collection id, field path → ``FieldSetting``.
  case fieldSettings = 0x17
  /// collection number, field number, value, document id → nothing. One for each field of each document.
  case ascendingEntries = 0x20
  /// collection number, field number, array element, document id → nothing. One for each different element.
  case containmentEntries = 0x21
  /// index number, collection number, codes of the index's fields, document id → bytes of the id's code.
  case compositeEntries = 0x22
  /// index number, codes of the index's fields, document path → bytes of the path's code.
  case groupEntries = 0x23
  /// commit version, position in the commit → kind of change, collection number, document id.
  case changeLog = 0x30
  /// collection number, commit version, document id → kind of change.
  case collectionChanges = 0x31
  /// collection number, document id (its end marked), commit version → the document before that commit.
  ///
  /// A commit that made a document left none: a version below that of the next before-image says as much. Data from
  /// before this was so has a row without a value there.
  case history = 0x32

  /// The tables of index entries.
  static let entryTables = [ascendingEntries, containmentEntries, compositeEntries, groupEntries]
}

/// The rows of ``Table/meta``. Numbers are little-endian, eight bytes.
package enum MetaKey: String, CaseIterable, Sendable {
  /// The layout of the keys above; see ``DocumentStoreFormat``.
  case format
  /// 16 random bytes: new for every database, every fork and every clearing.
  case incarnation
  /// The version at which the database came into being.
  case created
  /// The version of the last commit.
  case lastVersion
  /// The highest collection number given out.
  case collectionNumber
  /// The highest field number given out.
  case fieldNumber
  /// Reads at this version and later find all before-images they need.
  case historyFrom
  /// The change log holds every commit after this version.
  case changeLogFrom
  /// Entries in the change log.
  case changeLogCount
  /// The highest index number given out.
  case indexNumber
  /// Changes with everything in ``Table/indexes`` and ``Table/fieldSettings`` that decides which entries there are.
  case indexGeneration
  /// The mark of the last commit that had one; see ``CommitRequest/mark``.
  case lastMark
}

/// What the number of ``MetaKey/format`` may be.
package enum DocumentStoreFormat {
  /// The first layout: every field has its automatic entries, and nothing else is indexed.
  package static let plain: UInt64 = 1
  /// The highest this code reads, with the tables of declared indexes. A database becomes one when it is first given
  /// an index configuration, so that no older version writes to it and leaves its entries behind.
  package static let current: UInt64 = 2
}

/// A storage key under construction. Reuse one: its memory stays.
package struct StorageKey: Sendable {
  /// The bytes so far.
  package private(set) var bytes: [UInt8] = []

  /// An empty key.
  package init() { bytes.reserveCapacity(64) }

  /// Starts a key of a table.
  package mutating func begin(_ table: Table) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(table.rawValue)
  }

  /// Starts the key of a row of ``Table/meta``.
  package mutating func begin(_ meta: MetaKey) {
    begin(.meta)
    bytes.append(contentsOf: meta.rawValue.utf8)
  }

  /// Starts a key with bytes that another key began with.
  package mutating func begin(raw prefix: [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: prefix)
  }

  /// Appends a number.
  package mutating func append(number: UInt64) { OrderedCode.append(number: number, to: &bytes) }

  /// Appends a commit version.
  package mutating func append(version: Int64) { OrderedCode.append(version: version, to: &bytes) }

  /// Appends an id that ends the key.
  package mutating func append<ID: Collection<UInt8>>(lastID id: ID) { OrderedCode.append(lastID: id, to: &bytes) }

  /// Appends an id, or a path segment, that something follows.
  package mutating func append<ID: Collection<UInt8>>(segment id: ID) { OrderedCode.append(segment: id, to: &bytes) }

  /// Appends every segment of a path.
  package mutating func append(path: ResourcePath) {
    guard !path.isRoot else { return }
    path.bytes.withUnsafeBytes { path in
      var start = 0
      for index in 0...path.count where index == path.count || path[index] == UInt8(ascii: "/") {
        OrderedCode.append(segment: UnsafeRawBufferPointer(rebasing: path[start..<index]), to: &bytes)
        start = index + 1
      }
    }
  }

  /// Appends bytes that are already a code, or a name that ends the key.
  package mutating func append<Bytes: Sequence<UInt8>>(raw code: Bytes) { bytes.append(contentsOf: code) }

  /// Shortens the key to a prefix it had before.
  package mutating func truncate(to count: Int) { bytes.removeLast(bytes.count - count) }

  /// Turns the key into the lowest that is above everything starting with it.
  ///
  /// Every key starts with a table's number, so there is always a byte that can be raised.
  package mutating func becomeUpperBound() {
    while bytes.last == 0xFF { bytes.removeLast() }
    if let last = bytes.indices.last { bytes[last] += 1 }
  }

  /// Lends the bytes.
  package func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    // `withUnsafeBytes` rethrows untyped; carry the result out by hand to keep the error's type.
    var result: Result<R, E>?
    bytes.withUnsafeBytes { pointer in
      do throws(E) { result = .success(try body(pointer)) } catch { result = .failure(error) }
    }
    switch result {
    case .success(let value): return value
    case .failure(let error): throw error
    case nil: preconditionFailure("withUnsafeBytes did not call its closure")
    }
  }
}
