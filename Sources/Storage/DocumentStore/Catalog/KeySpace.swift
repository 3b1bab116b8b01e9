package import DocumentModel
import KeyEncoding

/// The tables of a database, in key order. The numbers are on disk: never reuse or renumber one.
///
/// A storage key is the table's number followed by the parts listed below, each in ``OrderedCode``. A document ID
/// is the last part, without an end mark, unless stated otherwise.
package enum Table: UInt8, CaseIterable, Sendable {
  /// name → a number about the database; see ``MetaKey``.
  case meta = 0x01
  /// collection number, document ID → ``StoredDocument``. The documents of a collection are adjacent, in name order.
  case documents = 0x10
  /// collection path, segment by segment → collection number, version of its last change.
  case collections = 0x11
  /// collection ID, collection number → nothing. Lists the collections of a group.
  case collectionGroups = 0x12
  /// collection number → collection path.
  case collectionPaths = 0x13
  /// number of the enclosing field (0 at the top), field name → field number.
  case fields = 0x14
  /// field number → number of the enclosing field, field name.
  case fieldNames = 0x15
  /// index number → ``StoredIndex``; number 0 → the whole configuration as declared. See ``IndexRowWriter``.
  case indexes = 0x16
  /// collection ID, field path → ``FieldSetting``.
  case fieldSettings = 0x17
  /// collection number, field number, value, document ID → nothing. One for each field of each document.
  case ascendingEntries = 0x20
  /// collection number, field number, array element, document ID → nothing. One for each distinct element.
  case containmentEntries = 0x21
  /// index number, collection number, codes of the index's fields, document ID → bytes of the ID's code.
  case compositeEntries = 0x22
  /// index number, codes of the index's fields, document path → bytes of the path's code.
  case groupEntries = 0x23
  /// commit version, position in the commit → kind of change, collection number, document ID.
  case changeLog = 0x30
  /// collection number, commit version, document ID → kind of change.
  case collectionChanges = 0x31
  /// collection number, document ID with an end mark, commit version → the document before that commit.
  ///
  /// A commit that creates a document writes no row. A reader infers the creation from the next before-image, whose
  /// update version is above the version read. Data of older releases has a row with an empty value instead.
  case history = 0x32
  /// period of the commit's arrival, ID of the request → digest of the request, ``CommitOutcome``. One for each recent
  /// commit with an ID; see ``RecentCommits``.
  case recentCommits = 0x34

  /// The tables of index entries.
  static let entryTables = [ascendingEntries, containmentEntries, compositeEntries, groupEntries]
}

/// The rows of ``Table/meta``. The values are little-endian numbers of eight bytes.
package enum MetaKey: String, CaseIterable, Sendable {
  /// The layout of the keys above; see ``DocumentStoreFormat``.
  case format
  /// A random 64-bit number. Creating, forking and clearing a database assign a new one.
  case incarnation
  /// The version at which the database was created or last cleared.
  case created
  /// The version of the last commit.
  case lastVersion
  /// The highest collection number assigned.
  case collectionNumber
  /// The highest field number assigned.
  case fieldNumber
  /// Reads at this version and later find all before-images that they need.
  case historyFrom
  /// The change log holds every commit after this version.
  case changeLogFrom
  /// The number of entries in the change log.
  case changeLogCount
  /// The highest index number assigned.
  case indexNumber
  /// Incremented with every change in ``Table/indexes`` or ``Table/fieldSettings`` that affects which entries exist.
  case indexGeneration
  /// The mark of the last commit that had one; see ``CommitRequest/mark``.
  case lastMark
  /// The bytes of all documents, as ``DocumentUse`` counts them.
  case documentBytes
  /// The version for which ``documentBytes`` holds. If it is not the last version, a release without these rows wrote
  /// the database, and the documents must be counted again.
  case documentBytesVersion
}

/// The values of ``MetaKey/format``.
package enum DocumentStoreFormat {
  /// The first layout: every field has its automatic entries, and there are no declared indexes.
  package static let plain: UInt64 = 1
  /// The layout with the tables of declared indexes. A database changes to it with its first index configuration, so
  /// older versions of Hearth cannot write documents without maintaining the entries.
  package static let indexed: UInt64 = 2
  /// The layout with text indexes. A database has it from a configuration with one to a later one without.
  package static let textual: UInt64 = 3
  /// The newest layout that this code reads.
  package static let current = textual
}

/// A storage key under construction. Reuse one key: it keeps its memory.
package struct StorageKey: Sendable {
  /// The bytes so far.
  package private(set) var bytes: [UInt8] = []

  /// Creates an empty key.
  package init() { bytes.reserveCapacity(64) }

  /// Releases the memory. The next key allocates it again.
  mutating func release() { bytes = [] }

  /// Starts a key in a table.
  package mutating func begin(_ table: Table) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(table.rawValue)
  }

  /// Starts the key of a row of ``Table/meta``.
  package mutating func begin(_ meta: MetaKey) {
    begin(.meta)
    bytes.append(contentsOf: meta.rawValue.utf8)
  }

  /// Starts a key with the given bytes.
  package mutating func begin(raw prefix: [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: prefix)
  }

  /// Appends a number.
  package mutating func append(number: UInt64) { OrderedCode.append(number: number, to: &bytes) }

  /// Appends a commit version.
  package mutating func append(version: Int64) { OrderedCode.append(version: version, to: &bytes) }

  /// Appends an ID that ends the key.
  package mutating func append<ID: Collection<UInt8>>(lastID id: ID) {
    // The compiler specializes this closure, but not a generic function of another module.
    let isAppended: Void? = id.withContiguousStorageIfAvailable {
      OrderedCode.append(lastID: UnsafeRawBufferPointer($0), to: &bytes)
    }
    if isAppended == nil { OrderedCode.append(lastID: id, to: &bytes) }
  }

  /// Appends an ID or a path segment that other parts follow.
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

  /// Appends bytes that are already encoded, or a name that ends the key.
  package mutating func append<Bytes: Sequence<UInt8>>(raw code: Bytes) { bytes.append(contentsOf: code) }

  /// Replaces all but the first `count` bytes.
  package mutating func replaceEnd(from count: Int, with code: [UInt8]) {
    guard bytes.count == count + code.count else {
      bytes.removeLast(bytes.count - count)
      return bytes.append(contentsOf: code)
    }
    // IDs that a server or a client library made have the same length.
    bytes.withUnsafeMutableBytes { bytes in
      code.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[count...]).copyMemory(from: $0) }
    }
  }

  /// Shortens the key to its first `count` bytes.
  package mutating func truncate(to count: Int) { bytes.removeLast(bytes.count - count) }

  /// Changes the key to the lowest key above all keys that start with it.
  ///
  /// Every key starts with a table's number, so there is always a byte that can be incremented.
  package mutating func becomeUpperBound() {
    while bytes.last == 0xFF { bytes.removeLast() }
    if let last = bytes.indices.last { bytes[last] += 1 }
  }

  /// Calls `body` with the bytes, which are valid until it returns.
  /// - Throws: the error of `body`.
  package func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    // `withUnsafeBytes` rethrows without the error's type, so carry the result out to keep it.
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
