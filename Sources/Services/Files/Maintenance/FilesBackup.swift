import ContentSharing
import Glibc
package import KeyValue

/// A copy of file content into another directory, and what it copied.
package struct FilesBackup: Sendable {
  /// The number of objects in the metadata.
  package private(set) var objects = 0
  /// The number of copied contents.
  package private(set) var contents = 0
  /// The size of the copied contents, in bytes.
  package private(set) var bytes = 0
  /// The missing and damaged contents of the source: descriptions of the first thousand.
  package private(set) var problems: [String] = []
  /// The number of missing and damaged contents.
  package private(set) var problemCount = 0

  private static let problemsMax = 1000

  /// Returns the sum of this outcome and that of another copy.
  package func adding(_ other: FilesBackup) -> FilesBackup {
    var sum = self
    sum.objects += other.objects
    sum.contents += other.contents
    sum.bytes += other.bytes
    sum.problems = Array((problems + other.problems).prefix(Self.problemsMax))
    sum.problemCount += other.problemCount
    return sum
  }

  /// Copies the content that a copy of the metadata refers to. Removes the uploads from that copy, because their content is not
  /// copied, and the place of the shared content of a cluster, which belongs to that cluster.
  ///
  /// Take a ``ContentLock`` on the source before copying the metadata, and hold it until this initializer returns,
  /// so the content cannot be removed meanwhile. The copy is verified. If `earlier` contains a content undamaged,
  /// that file is linked instead of copied. Without `verifiesEarlier`, it is not read before.
  ///
  /// Cost: reads and syncs every content, or without `verifiesEarlier` the new contents.
  /// - Throws: ``FilesError`` if the metadata cannot be read or changed, or the copy cannot be written.
  package init(
    of metadata: any KeyValueStore, from source: ContentDirectory, to destination: ContentDirectory,
    earlier: ContentDirectory? = nil, verifiesEarlier: Bool = true, progress: (Int) -> Void = { _ in }
  ) throws(FilesError) {
    try Self.forgetUploadsAndPlace(metadata)
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw .storage(error) }
    defer { snapshot.end() }
    let scan = try MetadataCursor(snapshot)
    let wanted = FilesKeySpace.all(.contents)
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      let digest = ContentDigest(bytes: Array(scan.key.dropFirst()))
      objects += Int(scan.value.fieldNumber)
      var isLinked = false
      if let earlier {
        let isIntact = verifiesEarlier ? try Self.holds(earlier, digest) : true
        if isIntact { isLinked = try destination.link(digest, from: earlier) }
      }
      if isLinked { bytes += destination.size(of: digest) ?? 0 } else { try copy(digest, source, destination) }
      contents += 1
      progress(bytes)
      isFound = try scan.next()
    }
  }

  /// Returns whether a directory contains content that matches its digest.
  private static func holds(_ contents: ContentDirectory, _ digest: ContentDigest) throws(FilesError) -> Bool {
    guard let descriptor = try contents.open(digest) else { return false }
    defer { close(descriptor) }
    let hasher = ContentHasher()
    do throws(FilesError) {
      try ContentFile.forEachPiece(of: descriptor, path: contents.file(of: digest)) { hasher.update($0) }
    } catch { return false }
    return try hasher.finish().digest == digest
  }

  private mutating func copy(
    _ digest: ContentDigest, _ source: ContentDirectory, _ destination: ContentDirectory
  ) throws(FilesError) {
    guard let descriptor = try source.open(digest) else {
      let advice =
        source.isCache ? "; it is only in the shared files of the cluster, which need a backup of their own" : ""
      return note("\(source.file(of: digest)) is missing\(advice)")
    }
    defer { close(descriptor) }
    let incoming = try destination.makeIncoming(digest.text)
    try ContentFile.forEachPiece(of: descriptor, path: source.file(of: digest)) { (piece) throws(FilesError) in
      try incoming.append(piece)
    }
    bytes += incoming.size
    let found = try incoming.finish()
    if found.digest != digest { note("\(source.file(of: digest)) does not match the SHA-256 in its name") }
    // The rest of damaged content is worth keeping too.
    try destination.publish(incoming, as: digest)
  }

  private mutating func note(_ problem: String) {
    problemCount += 1
    if problems.count < Self.problemsMax { problems.append(problem) }
  }

  private static func forgetUploadsAndPlace(_ metadata: any KeyValueStore) throws(FilesError) {
    var failure: FilesError?
    do throws(StorageError) {
      try metadata.write { (transaction) throws(StorageError) in
        do throws(FilesError) {
          let wanted = FilesKeySpace.all(.uploads)
          while let key = try MetadataCursor(transaction).first(atOrAfter: wanted), key.starts(with: wanted) {
            try transaction.erase(key)
          }
          for key in [FilesKeySpace.shared, FilesKeySpace.sharedSweep] where try transaction.read(key) != nil {
            try transaction.erase(key)
          }
        } catch { failure = error }
      }
    } catch { throw .storage(error) }
    if let failure { throw failure }
  }
}
