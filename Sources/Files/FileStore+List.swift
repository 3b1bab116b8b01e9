import KeyValueStore
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

  /// One page of a bucket's objects. Cost: a seek for each prefix, a row for each object.
  /// - Throws: ``FilesError/invalid(_:)`` for a page token that is none.
  package func list(_ listing: ObjectListing) throws(FilesError) -> ObjectPage {
    let base = FilesKeySpace.objects(of: listing.bucket)
    let wanted = base + listing.prefix.utf8
    var position = wanted
    let start = base + listing.start.utf8
    if position.lexicographicallyPrecedes(start) { position = start }
    if let token = listing.pageToken, !token.isEmpty {
      guard let bytes = Base64.decode(token) else { throw .invalid("Invalid page token.") }
      let begin = base + bytes
      if position.lexicographicallyPrecedes(begin) { position = begin }
    }
    let end = base + listing.end.utf8
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    let scan = try KeyScan(snapshot)
    var page = ObjectPage()
    var rows = 0
    var bytes = 0
    var isFound = try scan.seek(position)
    while isFound, scan.key.starts(with: wanted) {
      if !listing.end.isEmpty, !scan.key.lexicographicallyPrecedes(end) { break }
      let isFull = page.objects.count + page.prefixes.count >= listing.countMax
      if isFull || rows >= Self.rowsMax || bytes >= Self.bytesMax {
        page.nextPageToken = Base64.encode(Array(scan.key.dropFirst(base.count)))
        break
      }
      rows += 1
      bytes += scan.key.count + scan.value.count
      let rest = UnsafeRawBufferPointer(rebasing: scan.key.dropFirst(wanted.count))
      if let length = Self.folded(rest, listing) {
        let prefix = Array(scan.key.prefix(wanted.count + length))
        let text = String(decoding: prefix.dropFirst(base.count), as: UTF8.self)
        if !listing.skipsEmptyParts || !Self.hasEmptyPart(text.utf8.dropLast()) { page.prefixes.append(text) }
        if listing.includesTrailingDelimiter, length == rest.count { try append(scan, to: &page) }
        isFound = try scan.seek(FilesKeySpace.end(of: prefix))
      } else {
        if !listing.skipsEmptyParts || !Self.hasEmptyPart(scan.key.dropFirst(base.count)) {
          try append(scan, to: &page)
        }
        isFound = try scan.next()
      }
    }
    return page
  }

  private func append(_ scan: KeyScan, to page: inout ObjectPage) throws(FilesError) {
    guard let name = FilesKeySpace.objectName(scan.key) else { return }
    guard let object = ObjectRecord.decode(scan.value, name) else { throw .damaged(name) }
    page.objects.append(object)
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
