/// A path below the documents root: collection ID, document ID, collection ID, and so on. The empty path is the
/// root.
///
/// It is stored as UTF-8 bytes with `/` between the segments, because no ID may contain `/`. That takes one
/// allocation, and paths are compared and hashed as bytes, never by Unicode equivalence. The order is that of
/// document names: segment by segment.
package struct ResourcePath: Hashable, Sendable {
  /// The segments joined by `/`.
  package let bytes: [UInt8]

  /// The documents root.
  package static let root = ResourcePath(uncheckedBytes: [])

  /// Wraps bytes that are known to be a valid path.
  package init(uncheckedBytes bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Parses `a/b/c` and checks every ID.
  /// - Throws: ``ModelError`` with the documented text for the first invalid ID, or if the path is too long or too
  ///   deep.
  package init(_ text: String) throws(ModelError) {
    try self.init(checking: Array(text.utf8))
  }

  /// Checks every ID of a path given as bytes.
  /// - Throws: ``ModelError`` with the documented text for the first invalid ID, or if the path is too long or too
  ///   deep.
  package init(checking bytes: [UInt8]) throws(ModelError) {
    self.bytes = bytes
    guard !bytes.isEmpty else { return }
    guard bytes.count <= Limits.documentNameBytesMax else { throw .documentNameTooLong }
    var index = 0
    var start = 0
    for position in 0...bytes.count where position == bytes.count || bytes[position] == UInt8(ascii: "/") {
      try Self.checkSegment(bytes[start..<position], index: index, path: self)
      start = position + 1
      index += 1
    }
    guard index <= 2 * Limits.collectionDepthMax else { throw .pathTooDeep }
  }

  /// Whether this is the documents root.
  package var isRoot: Bool { bytes.isEmpty }

  /// Whether this path names a collection, which is an odd number of segments.
  package var isCollection: Bool { !segmentCount.isMultiple(of: 2) }

  /// Whether this path names a document, which is an even number of segments, and at least two.
  package var isDocument: Bool { !isRoot && segmentCount.isMultiple(of: 2) }

  /// The number of segments. Cost: one pass over the bytes.
  package var segmentCount: Int {
    guard !bytes.isEmpty else { return 0 }
    var count = 1
    for byte in bytes where byte == UInt8(ascii: "/") { count += 1 }
    return count
  }

  /// The segments in order, as slices of ``bytes``.
  package var segments: [ArraySlice<UInt8>] {
    bytes.isEmpty ? [] : bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
  }

  /// The last segment; empty for the root.
  package var lastSegment: ArraySlice<UInt8> {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return bytes[...] }
    return bytes[(slash + 1)...]
  }

  /// The last segment as text.
  package var id: String { String(decoding: lastSegment, as: UTF8.self) }

  /// The path without its last segment. The parent of the root is the root.
  package var parent: ResourcePath {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return .root }
    return ResourcePath(uncheckedBytes: Array(bytes[..<slash]))
  }

  /// Returns the path with one more segment, which must be a valid ID.
  package func appending(_ id: some Collection<UInt8>) -> ResourcePath {
    var joined = [UInt8]()
    joined.reserveCapacity(bytes.count + 1 + id.count)
    joined.append(contentsOf: bytes)
    if !bytes.isEmpty { joined.append(UInt8(ascii: "/")) }
    joined.append(contentsOf: id)
    return ResourcePath(uncheckedBytes: joined)
  }

  /// Returns the path with one more segment, given as text, which must be a valid ID.
  package func appending(_ id: String) -> ResourcePath { appending(id.utf8) }

  /// Returns whether this path starts with all segments of `other`. That is true for `other` itself.
  package func isAtOrBelow(_ other: ResourcePath) -> Bool {
    if other.isRoot { return true }
    guard bytes.starts(with: other.bytes) else { return false }
    return bytes.count == other.bytes.count || bytes[other.bytes.count] == UInt8(ascii: "/")
  }

  private static func checkSegment(
    _ segment: ArraySlice<UInt8>, index: Int, path: ResourcePath
  ) throws(ModelError) {
    guard !segment.isEmpty else { throw .emptyResourceID(path: path.text, index: index) }
    guard segment.count <= Limits.resourceIDBytesMax else { throw .resourceIDTooLong }
    let dot = UInt8(ascii: ".")
    if segment.first == dot, segment.count <= 2, segment.allSatisfy({ $0 == dot }) {
      throw .dotResourceID(path: path.text, id: String(decoding: segment, as: UTF8.self), index: index)
    }
    if segment.first == UInt8(ascii: "_"), ResourceID.isReserved(segment) {
      let isCollection = index.isMultiple(of: 2)
      if isCollection || ResourceID.number(segment) == nil {
        throw .reservedResourceID(id: String(decoding: segment, as: UTF8.self), isCollection: isCollection)
      }
    }
  }

  /// The path as text.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension ResourcePath: Comparable {
  /// Orders paths segment by segment; a prefix sorts first (firestore-api.md, section 3.1).
  package static func < (a: ResourcePath, b: ResourcePath) -> Bool { compare(a, b) == .less }

  /// Compares two paths in name order. Cost: one pass over the bytes that they share, without an allocation.
  package static func compare(_ a: ResourcePath, _ b: ResourcePath) -> Ordering {
    let shared = sharedPrefix(a.bytes, b.bytes)
    if shared == a.bytes.count, shared == b.bytes.count { return .equal }
    // The segments before the first difference are equal. If the next ones are too, one path ends there.
    let slash = UInt8(ascii: "/")
    let start = a.bytes[..<shared].lastIndex(of: slash).map { $0 + 1 } ?? 0
    let order = ResourceID.compare(
      a.bytes[start...].prefix { $0 != slash }, b.bytes[start...].prefix { $0 != slash })
    return order == .equal ? Ordering(a.bytes.count, b.bytes.count) : order
  }

  /// Returns the number of equal bytes at the start of both arrays.
  private static func sharedPrefix(_ a: [UInt8], _ b: [UInt8]) -> Int {
    a.withUnsafeBufferPointer { a in
      b.withUnsafeBufferPointer { b in
        let count = min(a.count, b.count)
        var index = 0
        while index < count, a[index] == b[index] { index += 1 }
        return index
      }
    }
  }
}

extension ResourcePath: CustomStringConvertible {
  package var description: String { text }
}

/// The location of a document: a path with an even, non-zero number of segments.
package struct DocumentKey: Hashable, Sendable, Comparable {
  /// The path below the documents root, such as `rooms/lobby/messages/m1`.
  package let path: ResourcePath

  /// Creates a key, or returns `nil` if `path` is the root or a collection.
  package init?(_ path: ResourcePath) {
    guard path.isDocument else { return nil }
    self.path = path
  }

  /// Wraps a path that is known to name a document.
  package init(uncheckedPath path: ResourcePath) { self.path = path }

  /// The path of the collection that contains the document.
  package var collection: ResourcePath { path.parent }

  /// The document ID.
  package var id: ArraySlice<UInt8> { path.lastSegment }

  package static func < (a: DocumentKey, b: DocumentKey) -> Bool { a.path < b.path }
}

extension DocumentKey: CustomStringConvertible {
  package var description: String { path.text }
}
