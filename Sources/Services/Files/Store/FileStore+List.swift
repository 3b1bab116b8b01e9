import KeyValue
import WireFormat

/// Which objects of a bucket are listed.
package struct ObjectListing: Sendable {
  /// The bucket.
  package var bucket: String
  /// What their names begin with.
  package var prefix = ""
  /// Names that hold this behind the prefix are told as the part up to it, once.
  package var delimiter = ""
  /// The first name; names below are left out.
  package var start = ""
  /// Names from this one on are left out.
  package var end = ""
  /// Where the last page ended.
  package var pageToken: String?
  /// Objects and prefixes of one page.
  package var countMax = 1000
  /// Leaves out names with an empty part, such as `a//b` and `a/`, as Firebase's lists do.
  package var skipsEmptyParts = false
  /// Tells an object whose name ends with the delimiter as an object too.
  package var includesTrailingDelimiter = false
  /// Tells versions that were replaced or deleted too, the oldest of a name first.
  package var includesVersions = false
  /// Leaves out objects and prefixes whose name is none of the pattern's.
  package var pattern: NamePattern?

  /// Lists all of a bucket.
  package init(bucket: String) { self.bucket = bucket }
}

/// One page of a listing, each part in the order of the names' bytes.
package struct ObjectPage: Sendable {
  /// The objects.
  package var objects: [StoredObject] = []
  /// What names have in common up to the delimiter.
  package var prefixes: [String] = []
  /// Where the next page begins; `nil` at the end.
  package var nextPageToken: String?
}

extension FileStore {
  /// Rows looked at for one page, so that names that are left out hold up nobody.
  private static let rowsMax = 20_000
  /// Bytes of metadata of one page: it is made as one answer.
  private static let bytesMax = 4 << 20
  /// Steps of comparing names with a pattern.
  private static let stepsMax = 50_000_000

  /// One page of a bucket's objects. Cost: a seek for each prefix, a row for each object.
  /// - Throws: ``FilesError/invalid(_:)`` for a page token that is none.
  package func list(_ listing: ObjectListing) throws(FilesError) -> ObjectPage {
    let prefix = Array(listing.prefix.utf8)
    let end = Array(listing.end.utf8)
    let snapshot = try settledSnapshot(of: listing.bucket)
    defer { snapshot.end() }
    var scan = try ObjectIterator(snapshot, listing.bucket, includesVersions: listing.includesVersions)
    var start = prefix
    for other in [Array(listing.start.utf8), try Self.position(listing.pageToken)]
    where start.lexicographicallyPrecedes(other) { start = other }
    try scan.seek(start)
    var page = ObjectPage()
    var rows = 0
    var bytes = 0
    var steps = 0
    while let name = scan.name, name.starts(with: prefix) {
      if !end.isEmpty, !name.lexicographicallyPrecedes(end) { break }
      let isFull = page.objects.count + page.prefixes.count >= listing.countMax
      if isFull || rows >= Self.rowsMax || bytes >= Self.bytesMax || steps >= Self.stepsMax {
        page.nextPageToken = Base64.encode(scan.position)
        break
      }
      rows += 1
      bytes += scan.byteCount
      if let pattern = listing.pattern { steps += pattern.steps(forNameOf: name.count) }
      let rest = UnsafeRawBufferPointer(rebasing: name.dropFirst(prefix.count))
      if let length = Self.folded(rest, listing) {
        let folder = Array(name.prefix(prefix.count + length))
        let isMatch = listing.pattern?.matches(folder) ?? true
        if isMatch, Self.isListed(folder.dropLast(), listing) {
          page.prefixes.append(String(decoding: folder, as: UTF8.self))
        }
        // All versions of the one object that ends here are told, and what is below is left out.
        while listing.includesTrailingDelimiter, let name = scan.name, name.elementsEqual(folder) {
          if isMatch { page.objects.append(try scan.object()) }
          try scan.next()
        }
        try scan.seek(FilesKeySpace.end(of: folder))
      } else {
        if Self.isListed(name, listing), listing.pattern?.matches(name) ?? true {
          page.objects.append(try scan.object())
        }
        try scan.next()
      }
    }
    return page
  }

  /// A snapshot in which no object of a bucket waits to be seen: where the documents of one are committed, it is put in
  /// its place first, which takes a sync.
  private func settledSnapshot(of bucket: String) throws(FilesError) -> any KeyValueSnapshot {
    while true {
      let snapshot = try self.snapshot()
      if case .asStored = try answer(snapshot, isAbout: { $0.bucket.utf8.elementsEqual(bucket.utf8) }) {
        return snapshot
      }
      snapshot.end()
      try exclusively { (_) throws(FilesError) in }
    }
  }

  /// Where a page begins.
  private static func position(_ token: String?) throws(FilesError) -> [UInt8] {
    guard let token, !token.isEmpty else { return [] }
    guard let bytes = Base64.decode(token) else { throw .invalid("Invalid page token.") }
    return bytes
  }

  private static func isListed(_ name: some Collection<UInt8>, _ listing: ObjectListing) -> Bool {
    !listing.skipsEmptyParts || !hasEmptyPart(name)
  }

  /// How much of a name behind the prefix stands for all that begin with it.
  private static func folded(_ rest: UnsafeRawBufferPointer, _ listing: ObjectListing) -> Int? {
    let delimiter = Array(listing.delimiter.utf8)
    guard !delimiter.isEmpty, rest.count >= delimiter.count else { return nil }
    for start in 0...(rest.count - delimiter.count) {
      if rest[start..<(start + delimiter.count)].elementsEqual(delimiter) { return start + delimiter.count }
    }
    return nil
  }

  private static func hasEmptyPart(_ name: some Collection<UInt8>) -> Bool {
    var wasSlash = true
    for byte in name {
      let isSlash = byte == UInt8(ascii: "/")
      if isSlash && wasSlash { return true }
      wasSlash = isSlash
    }
    return wasSlash
  }
}
