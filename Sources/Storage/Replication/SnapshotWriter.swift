import Compression
package import KeyValue
package import LogEngine
package import SharedLog

/// The reason why a snapshot was not written.
package enum SnapshotWritingError: Error, Equatable, Sendable {
  /// The tables failed.
  case tables(SnapshotFailure)
  /// A data file cannot be read.
  case storage(StorageError)
  /// Another node has the claim, or has taken it because this one was slow.
  case noClaim
  /// The log does not have the positions of the data files: the log was truncated meanwhile, or this replica has another
  /// history.
  case notInLog
  /// A store was made meanwhile, so the snapshot would lack it, and with it commits before the position of the snapshot.
  case storeMade
  /// The caller ended it.
  case cancelled
}

extension SnapshotWritingError: CustomStringConvertible {
  /// The failure, for operators.
  package var description: String {
    switch self {
    case .tables(let failure): failure.text
    case .storage(let error): error.description
    case .noClaim: "another node writes one"
    case .notInLog: "the log does not have the entries at which the data files are"
    case .storeMade: "a database was made while the snapshot was written"
    case .cancelled: "the node stops"
    }
  }
}

/// Writes one snapshot: compact copies of the data files, compressed with zstd, in parts of 512 KiB.
///
/// Memory: some five parts. It needs no room on the disk. If it fails at any time, other nodes see nothing of it, and its
/// parts are removed later.
package final class SnapshotWriter {
  /// A data file to be copied.
  package struct Source: Sendable {
    package let name: StoreName
    /// Begins a copy, and returns it with the position of the data file.
    package let begin: @Sendable () throws(StorageError) -> (copy: PipedCopy, mark: LogPosition)

    package init(
      name: StoreName, begin: @escaping @Sendable () throws(StorageError) -> (copy: PipedCopy, mark: LogPosition)
    ) {
      self.name = name
      self.begin = begin
    }
  }

  /// The size of a part before it is sealed, in bytes.
  package static let partBytes = 512 << 10

  private let tables: any SnapshotTables
  private let sealed: SealedStores?
  private let isCancelled: () -> Bool
  private let progress: (_ fileBytes: Int64) -> Void
  private let id = UInt64.random(in: 1..<1 << 62)
  private var parts = 0
  private var bytes: Int64 = 0
  private var fileBytes: Int64 = 0
  private var failure: SnapshotWritingError?

  /// Prepares a snapshot. `progress` is called with the bytes of data files that were copied so far.
  package init(
    _ tables: any SnapshotTables, sealed: SealedStores?, isCancelled: @escaping () -> Bool = { false },
    progress: @escaping (_ fileBytes: Int64) -> Void = { _ in }
  ) {
    self.tables = tables
    self.sealed = sealed
    self.isCancelled = isCancelled
    self.progress = progress
  }

  /// Writes the snapshot. Call it once. `sources` returns all stores of the replica, at the start and again at the end.
  ///
  /// Cost: reads and compresses all data files, and sends them to the tables.
  /// - Throws: ``SnapshotWritingError``.
  package func write(_ sources: () -> [Source]) throws(SnapshotWritingError) -> SnapshotHead {
    guard try call({ () throws(SnapshotFailure) in try tables.claim(id) }) else { throw .noClaim }
    do throws(SnapshotWritingError) { return try writeClaimed(sources) } catch {
      try? tables.release(id)
      throw error
    }
  }

  private func writeClaimed(_ sources: () -> [Source]) throws(SnapshotWritingError) -> SnapshotHead {
    var manifest = SnapshotManifest(stores: [])
    for source in sources().sorted(by: { $0.name.text < $1.name.text }) { manifest.stores.append(try write(source)) }
    // The first batch of another store may be at or below the position, so a node that loads the snapshot would skip it.
    guard Set(sources().map(\.name)) == Set(manifest.stores.map(\.name)) else { throw .storeMade }
    guard let position = manifest.position, let encoded = manifest.bytes else { throw .notInLog }
    let head = SnapshotHead(id: id, position: position, parts: parts, bytes: bytes, fileBytes: fileBytes)
    let isWhole = try call { () throws(SnapshotFailure) in
      try tables.finish(head, manifest: encoded, marks: manifest.marks)
    }
    guard isWhole else { throw .notInLog }
    return head
  }

  private func write(_ source: Source) throws(SnapshotWritingError) -> SnapshotManifest.Store {
    let seal = sealed.flatMap { $0.stores.contains(source.name) ? $0.seal : nil }
    let (partsBefore, fileBytesBefore) = (parts, fileBytes)
    let digest = SnapshotDigest()
    let mark: LogPosition
    do {
      let compressor = try Compressor(.zstd)
      let begun: (copy: PipedCopy, mark: LogPosition)
      do throws(StorageError) { begun = try source.begin() } catch { throw SnapshotWritingError.storage(error) }
      mark = begun.mark
      var rest: [UInt8] = []
      func send(atLeast count: Int) throws(SnapshotWritingError) {
        while rest.count >= count, !rest.isEmpty {
          let part = Array(rest.prefix(Self.partBytes))
          rest.removeFirst(part.count)
          let stored = seal?.seal(part, of: source.name) ?? part
          digest.add(stored)
          try add(stored)
        }
      }
      do throws(StorageError) {
        try begun.copy.read { piece in
          do {
            guard !isCancelled() else { throw SnapshotWritingError.cancelled }
            rest += try compressor.encode([UInt8](piece))
            fileBytes += Int64(piece.count)
            progress(fileBytes)
            try send(atLeast: Self.partBytes)
            return true
          } catch {
            failure = error as? SnapshotWritingError ?? Self.compressionFailure
            return false
          }
        }
      } catch {
        if let failure { throw failure }
        throw SnapshotWritingError.storage(error)
      }
      rest += try compressor.encode([], isLast: true)
      try send(atLeast: 1)
    } catch {
      throw error as? SnapshotWritingError ?? Self.compressionFailure
    }
    guard let digest = digest.finish() else { throw Self.compressionFailure }
    return SnapshotManifest.Store(
      name: source.name, isSealed: seal != nil, mark: mark, parts: parts - partsBefore,
      fileBytes: fileBytes - fileBytesBefore, digest: digest)
  }

  private static let compressionFailure = SnapshotWritingError.tables(
    SnapshotFailure("libzstd or libcrypto failed, perhaps for lack of memory"))

  private func add(_ part: [UInt8]) throws(SnapshotWritingError) {
    let isAdded = try call { () throws(SnapshotFailure) in try tables.add(part, number: parts, to: id) }
    guard isAdded else { throw .noClaim }
    parts += 1
    bytes += Int64(part.count)
  }

  /// Calls the tables, which may be repeated after a lost answer.
  private func call<R>(_ body: () throws(SnapshotFailure) -> R) throws(SnapshotWritingError) -> R {
    for _ in 1..<Self.tries {
      do throws(SnapshotFailure) { return try body() } catch {}
      if isCancelled() { throw .cancelled }
    }
    do throws(SnapshotFailure) { return try body() } catch { throw .tables(error) }
  }

  private static let tries = 3
}
