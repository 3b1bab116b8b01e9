package import ContentSharing
import Glibc
package import KeyValue

/// A copy of the shared content of a cluster in a directory of content, and what was copied.
package struct SharedFilesCopy: Sendable {
  /// The number of contents to which the metadata refer.
  package private(set) var contents = 0
  /// The number of contents that were fetched, because the directory lacked them.
  package private(set) var fetched = 0
  /// The size of the fetched contents, in bytes.
  package private(set) var bytes = 0
  /// Descriptions of the first contents of which no intact copy exists.
  package private(set) var problems: [String] = []
  /// The number of contents of which no intact copy exists.
  package private(set) var problemCount = 0

  private static let problemsMax = 1000

  private let shared: any SharedContent
  private let destination: ContentDirectory

  /// Fetches the contents to which metadata refer and that the directory lacks, and removes those to which no metadata refer.
  /// Contents that are there are not read.
  ///
  /// A place keeps the copies of a content for ``SharedContentLimits/removalSeconds`` after the last object is deleted. So if the
  /// metadata are older, a content that is missing may not be needed any more.
  /// - Throws: ``FilesError`` if the metadata cannot be read, the directory cannot be written, or the place cannot be reached or
  ///   is not that of these files.
  package init(
    of metadata: any KeyValueStore, from shared: any SharedContent, to destination: ContentDirectory,
    progress: (Int) -> Void
  ) throws(FilesError) {
    (self.shared, self.destination) = (shared, destination)
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw .storage(error) }
    defer { snapshot.end() }
    // A run that was killed left these.
    destination.removeIncoming(except: [])
    let scan = try MetadataCursor(snapshot)
    let wanted = FilesKeySpace.all(.contents)
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      let digest = ContentDigest(bytes: Array(scan.key.dropFirst()))
      contents += 1
      if destination.size(of: digest) == nil {
        if fetched + problemCount == 0 { try requirePlace(snapshot) }
        try fetch(digest)
        progress(bytes)
      }
      isFound = try scan.next()
    }
    for part in UInt8.min...UInt8.max {
      for digest in destination.digests(part: part) where try snapshot.holders(of: digest) == 0 {
        destination.remove(digest)
      }
    }
  }

  /// Refuses a place that these files never used.
  private func requirePlace(_ snapshot: any KeyValueSnapshot) throws(FilesError) {
    guard let record = try snapshot.read(FilesKeySpace.shared), record.count == 9 else { return }
    let identity = record.dropLast().reduce(0) { $0 << 8 | UInt64($1) }
    let found: UInt64?
    do throws(SharedContentError) { found = try shared.identity(claiming: nil) } catch { throw FilesError(error) }
    guard found == identity else {
      throw .sharedContent("\(shared.place) is not the place of these files; name it with --shared-files")
    }
  }

  private mutating func fetch(_ digest: ContentDigest) throws(FilesError) {
    let copies: [SharedCopy]
    do throws(SharedContentError) { copies = try shared.copies(of: digest) } catch { throw FilesError(error) }
    for copy in copies {
      let incoming = try destination.makeIncoming(digest.text)
      guard try receive(copy, incoming), try incoming.finish().digest == digest else { continue }
      // The metadata refer to it already, so the name must not be on disk before the bytes are.
      try incoming.sync()
      try destination.publish(incoming, as: digest)
      fetched += 1
      bytes += incoming.size
      return
    }
    problemCount += 1
    guard problems.count < Self.problemsMax else { return }
    problems.append(
      "\(shared.place) has no intact copy of the content with the SHA-256 \(digest.text)")
  }

  /// Receives a copy. Returns whether it exists and could be read.
  private func receive(_ copy: SharedCopy, _ incoming: IncomingContent) throws(FilesError) -> Bool {
    var local: FilesError?
    do throws(SharedContentError) {
      return try shared.fetch(copy) { (piece) throws(SharedContentError) in
        do throws(FilesError) { try incoming.append(piece) } catch {
          local = error
          throw .full("the directory cannot be written")
        }
      }
    } catch {
      if let local { throw local }
      if case .damaged = error { return false }
      throw FilesError(error)
    }
  }
}
