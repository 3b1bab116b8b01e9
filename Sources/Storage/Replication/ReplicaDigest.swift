import Digests
import KeyValue
package import LogEngine

/// The content of a replica at one position of the log, as numbers. Replicas of one log have the same numbers at the same
/// position; if not, one of them is damaged.
package struct ReplicaDigest: Equatable, Sendable {
  /// The content of one store.
  package struct Store: Hashable, Sendable {
    package var name: StoreName
    /// The number of keys.
    package var entries: Int
    /// The size of all keys and values.
    package var bytes: Int
    /// The SHA-256 of all keys and values in the order of the keys, each after its length in 8 bytes, little-endian.
    package var digest: [UInt8]

    package init(name: StoreName, entries: Int, bytes: Int, digest: [UInt8]) {
      self.name = name
      self.entries = entries
      self.bytes = bytes
      self.digest = digest
    }
  }

  package var position: LogPosition
  /// The stores with at least one key, sorted by name.
  package var stores: [Store]

  package init(position: LogPosition, stores: [Store]) {
    self.position = position
    self.stores = stores
  }
}

/// The outcome of ``ClusterMember/digest(at:milliseconds:progress:)``.
package enum DigestOutcome: Equatable, Sendable {
  case digest(ReplicaDigest)
  /// The replica has applied more already: it is at this sequence.
  case passed(UInt64)
  /// The log did not get so far in time: the replica is at this sequence.
  case notReached(UInt64)
  /// `progress` ended it.
  case cancelled
}

/// The snapshots of all stores at one position.
struct ReplicaSnapshots {
  let position: LogPosition
  /// Sorted by name.
  private let stores: [(name: StoreName, snapshot: any KeyValueSnapshot)]

  /// Takes them. Cost: one read transaction for each store.
  /// - Throws: ``StorageError`` if a snapshot cannot be taken.
  init(of replica: Replica) throws(StorageError) {
    var stores: [(StoreName, any KeyValueSnapshot)] = []
    for name in replica.stores {
      guard let store = replica.loggedStore(name) else { continue }
      do throws(StorageError) { stores.append((name, try store.snapshot())) } catch {
        for (_, snapshot) in stores { snapshot.end() }
        throw error
      }
    }
    self.stores = stores
    position = replica.applied
  }

  func end() { for (_, snapshot) in stores { snapshot.end() } }

  /// Returns the digest, or `nil` if `progress` returned `false`. Ends the snapshots, each when it is read. Cost: reads
  /// everything.
  /// - Throws: ``StorageError`` if a store cannot be read, or libcrypto fails.
  func digest(progress: (_ bytes: Int) -> Bool) throws(StorageError) -> ReplicaDigest? {
    var digest = ReplicaDigest(position: position, stores: [])
    var done = 0
    var ended = 0
    defer { for (_, snapshot) in stores.dropFirst(ended) { snapshot.end() } }
    for (name, snapshot) in stores {
      var writer = DigestWriter()
      let cursor = try snapshot.makeCursor()
      var isAtEntry = try cursor.seek(atOrAfter: UnsafeRawBufferPointer(start: nil, count: 0))
      while isAtEntry {
        let isFull = writer.add(cursor.key, cursor.value)
        if isFull, !progress(done + writer.bytes) { return nil }
        isAtEntry = try cursor.next()
      }
      guard let sum = writer.finish() else { throw .corruption(path: name.text, detail: "libcrypto failed") }
      snapshot.end()
      (done, ended) = (done + writer.bytes, ended + 1)
      guard writer.entries > 0 else { continue }
      digest.stores.append(
        ReplicaDigest.Store(name: name, entries: writer.entries, bytes: writer.bytes, digest: sum))
    }
    return digest
  }
}

/// Collects keys and values for a SHA-256.
private struct DigestWriter: ~Copyable {
  private static let pieceBytes = 64 << 10

  private(set) var entries = 0
  private(set) var bytes = 0
  private var sum = MessageDigest(.sha256)
  private var piece: [UInt8] = []

  /// Adds an entry. Returns whether a piece of about 64 KiB is complete.
  mutating func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    entries += 1
    bytes += key.count + value.count
    append(key)
    append(value)
    guard piece.count >= Self.pieceBytes else { return false }
    flush()
    return true
  }

  private mutating func append(_ part: UnsafeRawBufferPointer) {
    withUnsafeBytes(of: UInt64(part.count).littleEndian) { piece.append(contentsOf: $0) }
    piece.append(contentsOf: part)
  }

  private mutating func flush() {
    piece.withUnsafeBytes { sum.update($0) }
    piece.removeAll(keepingCapacity: true)
  }

  mutating func finish() -> [UInt8]? {
    flush()
    return sum.finish()
  }
}
