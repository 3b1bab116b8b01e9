import KeyValue
import WireFormat

/// A query for objects of a bucket.
package struct ObjectListing: Sendable {
  package var bucket: String
  /// The prefix of the names to list.
  package var prefix = ""
  /// The delimiter of folders. Names that contain it after the prefix are listed once, as the part that ends with
  /// it.
  package var delimiter = ""
  /// The first name to list.
  package var start = ""
  /// The name before which the list ends.
  package var end = ""
  /// The token of the next page, from the previous page.
  package var pageToken: String?
  /// The most objects and prefixes of one page.
  package var countMax = 1000
  /// Whether to omit names with an empty part, such as `a//b` and `a/`, as Firebase's lists do.
  package var skipsEmptyParts = false
  /// Whether to list an object whose name ends with the delimiter as an object too.
  package var includesTrailingDelimiter = false
  /// Whether to list replaced and deleted versions too, the oldest version of a name first.
  package var includesVersions = false
  /// Whether an empty page of a bucket that does not exist is an error.
  package var requiresBucket = false
  /// The pattern that the names of objects and prefixes must match.
  package var pattern: NamePattern?

  /// Creates a query for all objects of a bucket.
  package init(bucket: String) { self.bucket = bucket }
}

/// A page of a listing. Objects and prefixes are sorted by the bytes of their names.
package struct ObjectPage: Sendable {
  package var objects: [StoredObject] = []
  /// The common parts of names up to the delimiter.
  package var prefixes: [String] = []
  /// The token of the next page, or `nil` on the last page.
  package var nextPageToken: String?
}

extension FileStore {
  /// The most rows read for one page. Omitted names count too, so a page is never slow.
  private static let rowsMax = 20_000
  /// The most bytes of metadata in one page, which is one response.
  private static let bytesMax = 4 << 20
  /// The most steps spent on matching names with a pattern.
  private static let stepsMax = 50_000_000

  /// Returns a page of a bucket's objects. Cost: a seek for each prefix, a row for each object.
  /// - Throws: ``FilesError/invalid(_:)`` if the page token is not valid; ``FilesError/noSuchBucket(_:)``;
  ///   ``FilesError/storage(_:)`` if the read fails.
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
        // List all versions of the object that has this name, and skip the names below it.
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
    if listing.requiresBucket, page.objects.isEmpty, page.prefixes.isEmpty, try bucket(listing.bucket) == nil {
      throw .noSuchBucket(listing.bucket)
    }
    return page
  }

  /// Returns a snapshot without a committed but unsettled object of the bucket. Settles such a commit first, which
  /// takes a sync.
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

  /// Returns the position at which a page begins.
  private static func position(_ token: String?) throws(FilesError) -> [UInt8] {
    guard let token, !token.isEmpty else { return [] }
    guard let bytes = Base64.decode(token) else { throw .invalid("Invalid page token.") }
    return bytes
  }

  private static func isListed(_ name: some Collection<UInt8>, _ listing: ObjectListing) -> Bool {
    !listing.skipsEmptyParts || !hasEmptyPart(name)
  }

  /// Returns the length of the part of `rest` that ends with the first delimiter, or `nil` if it contains none.
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
