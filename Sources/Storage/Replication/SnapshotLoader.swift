import Compression
import Glibc
import KeyValue
import LMDBEngine
import LogEngine
import SharedLog

/// The reason why a snapshot was not loaded.
enum SnapshotLoadingError: Error, Equatable, Sendable {
  case tables(SnapshotFailure)
  case storage(StorageError)
  /// Each snapshot is damaged, or the log does not have its position. The texts say which, and why.
  case unusable([String])
  case cancelled

  var text: String {
    switch self {
    case .tables(let failure): failure.text
    case .storage(let error): error.description
    case .unusable(let reasons): reasons.joined(separator: "; ")
    case .cancelled: "the node stops"
    }
  }
}

/// Loads the newest snapshot that is usable into the folder of a replica.
///
/// Memory: some five parts.
final class SnapshotLoader {
  private let tables: any SnapshotTables
  private let folder: ReplicaFolder
  private let secret: UInt64
  private let sealed: SealedStores?
  private let isCancelled: () -> Bool
  private let progress: (_ bytes: Int64, _ total: Int64) -> Void

  init(
    _ tables: any SnapshotTables, _ folder: ReplicaFolder, secret: UInt64, sealed: SealedStores?,
    isCancelled: @escaping () -> Bool, progress: @escaping (_ bytes: Int64, _ total: Int64) -> Void
  ) {
    self.tables = tables
    self.folder = folder
    self.secret = secret
    self.sealed = sealed
    self.isCancelled = isCancelled
    self.progress = progress
  }

  /// Replaces the data files of the replica, because it is new (`nil`) or an error ended it, with those of a snapshot; see
  /// ``ReplicaFolder/replace(with:aside:)``. Without a snapshot, the replica begins with the log.
  func load(after error: ReplicaError?, aside: String?) throws(SnapshotLoadingError) {
    guard try loadNewest(aside: aside) == nil else { return }
    guard error != .truncated else {
      throw .unusable(["there is no snapshot yet, and the log does not begin with its first entry"])
    }
    // The log has everything. Otherwise the next observation says that it is truncated.
    try loadNothing(aside: aside)
  }

  /// Loads a snapshot. Returns its head, or `nil` if the tables have no snapshot.
  private func loadNewest(aside: String?) throws(SnapshotLoadingError) -> SnapshotHead? {
    let heads = try call { () throws(SnapshotFailure) in try tables.snapshots() }
    var reasons: [String] = []
    for head in heads {
      do throws(SnapshotLoadingError) {
        let stores = try load(head)
        do throws(StorageError) { try folder.replace(with: stores, aside: aside) } catch { throw .storage(error) }
        return head
      } catch {
        guard case .unusable(let found) = error else { throw error }
        reasons += found.map { "snapshot at entry \(head.position.sequence): \($0)" }
      }
    }
    guard reasons.isEmpty else { throw .unusable(reasons) }
    return nil
  }

  /// Removes the data files of the replica, or moves them to the folder `aside`.
  private func loadNothing(aside: String?) throws(SnapshotLoadingError) {
    do throws(StorageError) {
      try folder.beginLoading()
      try folder.replace(with: [], aside: aside)
    } catch { throw .storage(error) }
  }

  private func load(_ head: SnapshotHead) throws(SnapshotLoadingError) -> [StoreName] {
    let isInLog = try call { () throws(SnapshotFailure) in try tables.hasEntry(at: head.position) }
    guard isInLog else { throw .unusable(["the log does not have its position"]) }
    let found = try call { () throws(SnapshotFailure) in try tables.manifest(of: head.id) }
    guard let found else { throw .unusable(["it was removed meanwhile"]) }
    guard let manifest = SnapshotManifest(found), manifest.position == head.position else {
      throw .unusable(["the list of its stores is damaged, or of a newer version of Hearth"])
    }
    do throws(StorageError) { try folder.beginLoading() } catch { throw .storage(error) }
    var part = 0
    var loaded: Int64 = 0
    for (number, store) in manifest.stores.enumerated() {
      try load(store, number, head, &part, &loaded)
    }
    return manifest.stores.map(\.name)
  }

  private func load(
    _ store: SnapshotManifest.Store, _ number: Int, _ head: SnapshotHead, _ part: inout Int, _ loaded: inout Int64
  ) throws(SnapshotLoadingError) {
    let path = folder.loadingPath(number)
    do {
      let target = try Descriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      let decompressor = try Decompressor(.zstd)
      let digest = SnapshotDigest()
      var fileBytes: Int64 = 0
      for _ in 0..<store.parts {
        guard !isCancelled() else { throw SnapshotLoadingError.cancelled }
        let next = part
        let stored = try call { () throws(SnapshotFailure) in try tables.part(next, of: head.id) }
        guard let stored else { throw SnapshotLoadingError.unusable(["it was removed meanwhile"]) }
        digest.add(stored)
        fileBytes += try write(try opened(stored, store), to: target.number, path, decompressor)
        part += 1
        loaded += Int64(stored.count)
        progress(loaded, head.bytes)
      }
      guard digest.finish() == store.digest, fileBytes == store.fileBytes, decompressor.isComplete else {
        throw SnapshotLoadingError.unusable(["the parts of \(store.name) are damaged"])
      }
      try target.sync()
      try setMark(store, path)
    } catch let error as SnapshotLoadingError {
      throw error
    } catch let error as StorageError {
      throw .storage(error)
    } catch {
      throw .unusable(["the parts of \(store.name) are damaged: \(error)"])
    }
  }

  /// Returns a part as it was before it was sealed.
  private func opened(
    _ part: [UInt8], _ store: SnapshotManifest.Store
  ) throws(SnapshotLoadingError) -> [UInt8] {
    let mustBeSealed = sealed?.stores.contains(store.name) ?? false
    guard store.isSealed else {
      guard !mustBeSealed else { throw .unusable(["\(store.name) is not encrypted, but must be"]) }
      return part
    }
    guard let opened = sealed?.seal.open(part[...], of: store.name) else {
      throw .unusable(["\(store.name) is not encrypted with the key of this node"])
    }
    return opened
  }

  /// Decompresses a part into a file. Returns the number of bytes.
  private func write(
    _ part: [UInt8], to descriptor: Int32, _ path: String, _ decompressor: Decompressor
  ) throws -> Int64 {
    var written: Int64 = 0
    var position = 0
    let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.bufferBytes, alignment: 8)
    defer { space.deallocate() }
    while true {
      let count = try part.withUnsafeBytes { try decompressor.decode($0, from: &position, into: space) }
      var done = 0
      while done < count, let start = space.baseAddress {
        let result = Glibc.write(descriptor, start + done, count - done)
        if result < 0, errno == EINTR { continue }
        guard result > 0 else { throw StorageError.systemCall("write", path: path) }
        done += result
      }
      written += Int64(count)
      if position == part.count, count < space.count { return written }
    }
  }

  private static let bufferBytes = 256 << 10

  /// Makes a loaded file a replica at the mark of its store. This also opens it, so a file that is not one of ours is
  /// noticed.
  private func setMark(_ store: SnapshotManifest.Store, _ path: String) throws(StorageError) {
    defer { unlink("\(path)-lock") }
    var options = LMDBOptions(path: path, mapBytes: folder.mapBytes).withRoom()
    options.acceptsOpenLog = true
    let file = try LMDBStore.open(options)
    try file.writeMarked { _ throws(StorageError) in
      LogMark(isOpen: true, position: LogOrigin(position: store.mark, secret: secret).bytes)
    }
  }

  private func call<R>(_ body: () throws(SnapshotFailure) -> R) throws(SnapshotLoadingError) -> R {
    for _ in 1..<Self.tries {
      do throws(SnapshotFailure) { return try body() } catch {}
      guard !isCancelled() else { throw .cancelled }
      usleep(Self.pauseMicroseconds)
    }
    do throws(SnapshotFailure) { return try body() } catch { throw .tables(error) }
  }

  private static let tries = 10
  private static let pauseMicroseconds: useconds_t = 200_000
}
