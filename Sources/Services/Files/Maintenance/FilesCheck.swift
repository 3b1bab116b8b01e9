import ContentSharing
import Glibc
package import KeyValue

/// A check of all files: counts them and lists what is damaged.
package struct FilesCheck: Sendable {
  /// The number of objects, including old versions.
  package private(set) var objects = 0
  /// The number of distinct contents.
  package private(set) var contents = 0
  /// The size of the contents, in bytes.
  package private(set) var contentBytes = 0
  /// The number of objects whose content is not in a directory that is a cache of shared content.
  package private(set) var remote = 0
  /// The number of stored uploads.
  package private(set) var uploads = 0
  /// The number of contents to which no object refers. The server removes them; they are not damage.
  package private(set) var orphans = 0
  /// Descriptions of the first thousand problems.
  package private(set) var problems: [String] = []
  /// The number of problems.
  package private(set) var problemCount = 0

  private static let problemsMax = 1000
  private static let knownMax = 100_000

  /// The checksums of shared contents, so each is usually read once.
  private var known: [ContentDigest: ContentSummary] = [:]
  /// The number of objects still to be found, for each content with more than one.
  private var expected: [ContentDigest: Int] = [:]
  private var holders = 0

  /// Reads all metadata, as of one moment, and all content.
  ///
  /// If a server may be using the directory, take a ``ContentLock`` on it before. `progress` is called with the
  /// bytes read. Cost: reads everything, and uses memory for each shared content.
  /// - Throws: ``FilesError`` if the metadata cannot be read.
  package init(
    _ metadata: any KeyValueStore, _ contents: ContentDirectory, progress: (Int) -> Void = { _ in }
  ) throws(FilesError) {
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw .storage(error) }
    defer { snapshot.end() }
    try checkContents(snapshot)
    var bytesRead = 0
    for table in [FilesKeySpace.Table.objects, .versions] {
      try checkObjects(table, snapshot, contents, &bytesRead, progress)
    }
    var holdings = objects
    if let pending = try snapshot.pendingCommit() {
      // The pending commit refers to its content as an object does.
      try check(pending.object, snapshot, contents, &bytesRead)
      holdings += 1
    }
    if holders != holdings || !expected.isEmpty {
      note("the reference counts of content are wrong: \(objects) objects, \(holders) references")
    }
    if let use = try snapshot.storedUse(), use != (try snapshot.countedUse()) {
      note("the sum of the sizes of all objects is wrong: \(use) bytes")
    }
    known = [:]
    uploads = try Self.count(.uploads, snapshot)
    try countOrphans(metadata, contents)
  }

  private mutating func checkContents(_ snapshot: any KeyValueSnapshot) throws(FilesError) {
    let scan = try MetadataCursor(snapshot)
    let wanted = FilesKeySpace.all(.contents)
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      let digest = ContentDigest(bytes: Array(scan.key.dropFirst()))
      let count = Int(scan.value.fieldNumber)
      if digest.bytes.count != 32 || scan.value.count != 8 || count < 1 {
        note("the reference count of \(digest.text) is damaged")
      } else {
        contents += 1
        holders += count
        if count > 1 { expected[digest] = count }
      }
      isFound = try scan.next()
    }
  }

  private mutating func checkObjects(
    _ table: FilesKeySpace.Table, _ snapshot: any KeyValueSnapshot, _ contents: ContentDirectory,
    _ bytesRead: inout Int, _ progress: (Int) -> Void
  ) throws(FilesError) {
    let scan = try MetadataCursor(snapshot)
    let wanted = FilesKeySpace.all(table)
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      objects += 1
      if let name = table == .objects ? FilesKeySpace.objectName(scan.key) : FilesKeySpace.versionName(scan.key) {
        if let object = ObjectRecord.decode(scan.value, name), object.content.digest.bytes.count == 32 {
          try check(object, snapshot, contents, &bytesRead)
          progress(bytesRead)
        } else {
          note("\(name.bucket)/\(name.name): the metadata are damaged")
        }
      } else {
        note("an object's name is damaged")
      }
      isFound = try scan.next()
    }
  }

  private mutating func check(
    _ object: StoredObject, _ snapshot: any KeyValueSnapshot, _ contents: ContentDirectory, _ bytesRead: inout Int
  ) throws(FilesError) {
    let digest = object.content.digest
    let shown = "\(object.name.bucket)/\(object.name.name)"
    if try snapshot.holders(of: digest) == 0 { note("\(shown): its content has no reference count") }
    let isShared = expected[digest] != nil
    if let left = expected[digest] { expected[digest] = left > 1 ? left - 1 : nil }
    let found: ContentSummary
    if let summary = known[digest] {
      found = summary
    } else {
      guard let descriptor = try contents.open(digest) else {
        if contents.isCache { remote += 1 } else { note("\(shown): its content is missing") }
        return
      }
      defer { close(descriptor) }
      let hasher = ContentHasher()
      do throws(FilesError) {
        try ContentFile.forEachPiece(of: descriptor, path: contents.file(of: digest)) { hasher.update($0) }
        found = try hasher.finish()
      } catch { return note("\(shown): its content cannot be read: \(error)") }
      bytesRead += found.size
      contentBytes += found.size
      if isShared, known.count < Self.knownMax { known[digest] = found }
    }
    let stored = object.content
    if found.size != stored.size {
      note("\(shown): its content has \(found.size) bytes instead of \(stored.size)")
    } else if found.digest != digest {
      note("\(shown): its content is not what was stored (SHA-256)")
    } else if found.crc32c != stored.crc32c || found.md5 != stored.md5 {
      note("\(shown): the checksums in its metadata are wrong")
    }
  }

  private mutating func countOrphans(_ metadata: any KeyValueStore, _ contents: ContentDirectory) throws(FilesError) {
    for part in UInt8.min...UInt8.max {
      let digests = contents.digests(part: part)
      guard !digests.isEmpty else { continue }
      let snapshot: any KeyValueSnapshot
      do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw .storage(error) }
      defer { snapshot.end() }
      for digest in digests where try snapshot.holders(of: digest) == 0 { orphans += 1 }
    }
  }

  private static func count(_ table: FilesKeySpace.Table, _ snapshot: any KeyValueSnapshot) throws(FilesError) -> Int {
    let scan = try MetadataCursor(snapshot)
    let wanted = FilesKeySpace.all(table)
    var count = 0
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      count += 1
      isFound = try scan.next()
    }
    return count
  }

  private mutating func note(_ problem: String) {
    problemCount += 1
    if problems.count < Self.problemsMax { problems.append(problem) }
  }
}
