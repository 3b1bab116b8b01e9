import DatabaseService
import DocumentModel
import Glibc
import WireFormat

/// The queries of the latest request bodies that came more than once, decoded and checked.
///
/// An app sends the same query again and again: for each user, or whenever a page is opened. The meaning of a body
/// depends on its bytes, the collection's parent in the URL and the edition of the database, so two requests with
/// the same of these are the same query. The table has a slot for each part of the hashes; a body takes the place
/// of another one only if it came twice. Memory: ``slots`` bodies of at most ``bodyBytesMax``, and their queries.
///
/// It does not lock. Each decoding context has its own.
struct PreparedQueries {
  private static let slots = 32
  /// The length of the longest body that is kept, in bytes.
  static let bodyBytesMax = 1024

  private struct Slot {
    /// The hash of a body that came once.
    var candidate = 0
    var kept: Kept?
  }

  private final class Kept {
    let hash: Int
    let body: [UInt8]
    let parent: ResourcePath
    let edition: Edition
    let query: PreparedQuery

    init(_ hash: Int, _ body: [UInt8], _ parent: ResourcePath, _ edition: Edition, _ query: PreparedQuery) {
      self.hash = hash
      self.body = body
      self.parent = parent
      self.edition = edition
      self.query = query
    }

    func isBody(_ other: UnsafeRawBufferPointer) -> Bool {
      guard body.count == other.count else { return false }
      return body.withUnsafeBytes { body in
        guard let known = body.baseAddress, let start = other.baseAddress else { return true }
        return memcmp(known, start, body.count) == 0
      }
    }
  }

  private var table = [Slot](repeating: Slot(), count: slots)

  /// Returns the hash of a body of a request below a parent.
  static func hash(_ body: UnsafeRawBufferPointer, below parent: ResourcePath) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: body)
    parent.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  /// Returns the query of an earlier request with the same body, parent, database and edition.
  func query(
    _ hash: Int, _ body: UnsafeRawBufferPointer, below parent: ResourcePath, in database: DatabaseID, _ edition: Edition
  ) -> PreparedQuery? {
    guard let kept = table[Self.slot(of: hash)].kept, kept.hash == hash, kept.edition == edition,
      kept.isBody(body), kept.parent == parent,
      kept.query.database == database
    else { return nil }
    return kept.query
  }

  /// Notes a body whose query is not kept. Returns whether the latest other body of its slot was the same, so that the
  /// query should be kept.
  mutating func note(_ hash: Int) -> Bool {
    let slot = Self.slot(of: hash)
    defer { table[slot].candidate = hash }
    return table[slot].candidate == hash
  }

  /// Keeps a query for later requests.
  mutating func keep(
    _ query: PreparedQuery, _ hash: Int, _ body: UnsafeRawBufferPointer, below parent: ResourcePath, _ edition: Edition
  ) {
    table[Self.slot(of: hash)].kept = Kept(hash, Array(body), parent, edition, query)
  }

  private static func slot(of hash: Int) -> Int { Int(UInt(bitPattern: hash) % UInt(slots)) }
}
