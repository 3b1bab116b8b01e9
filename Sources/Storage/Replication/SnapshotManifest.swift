package import LogEngine

/// The list of the stores in a snapshot. The parts of a store follow those of the store before it.
///
///     0   version of the form (1)
///         for each store:
///         length of the name (1), name
///         flags (1): 1 if the parts are sealed
///         sequence, epoch and chain of the mark (24), number of parts (8), bytes of the data file (8)
///         SHA-256 of the parts as they are stored (32)
///         at the end: SHA-256 of everything before (32)
///
/// Numbers are little-endian.
package struct SnapshotManifest: Equatable, Sendable {
  /// A data file of the snapshot.
  package struct Store: Equatable, Sendable {
    package var name: StoreName
    /// Whether the parts are encrypted with the ``BatchSeal`` of the cluster.
    package var isSealed: Bool
    /// The position up to which the data file has each commit of its own.
    package var mark: LogPosition
    package var parts: Int
    package var fileBytes: Int64
    /// The SHA-256 of the parts as they are stored, which says nothing about sealed contents.
    package var digest: [UInt8]
  }

  /// The stores, in the order of their parts.
  package var stores: [Store]

  private static let version: UInt8 = 1
  static let digestBytes = 32

  /// Describes stores.
  package init(stores: [Store]) { self.stores = stores }

  /// The marks of the stores.
  package var marks: [LogPosition] { stores.map(\.mark) }

  /// The least mark: nothing before it is needed from the log. `nil` without a store.
  package var position: LogPosition? { marks.min { $0.sequence < $1.sequence } }

  /// The encoded form, or `nil` if libcrypto fails.
  var bytes: [UInt8]? {
    var bytes = [Self.version]
    for store in stores {
      bytes.append(UInt8(store.name.text.utf8.count))
      bytes += store.name.text.utf8
      bytes.append(store.isSealed ? 1 : 0)
      let numbers = [
        store.mark.sequence, store.mark.epoch, store.mark.chain, UInt64(store.parts),
        UInt64(bitPattern: store.fileBytes),
      ]
      for number in numbers { withUnsafeBytes(of: number.littleEndian) { bytes += $0 } }
      bytes += store.digest
    }
    return SnapshotDigest.of(bytes).map { bytes + $0 }
  }

  /// Decodes the encoded form. Returns `nil` if it has another form, or its digest is wrong.
  init?(_ bytes: [UInt8]) {
    guard bytes.count > Self.digestBytes, bytes[0] == Self.version,
      SnapshotDigest.of(Array(bytes.dropLast(Self.digestBytes))) == Array(bytes.suffix(Self.digestBytes))
    else { return nil }
    var rest = bytes.dropFirst().dropLast(Self.digestBytes)
    func number() -> UInt64 {
      defer { rest = rest.dropFirst(8) }
      return rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    stores = []
    while let count = rest.first.map(Int.init) {
      guard rest.count >= 2 + count + 40 + Self.digestBytes,
        let name = StoreName(String(decoding: rest.dropFirst().prefix(count), as: UTF8.self))
      else { return nil }
      rest = rest.dropFirst(1 + count)
      guard let flags = rest.first, flags <= 1 else { return nil }
      rest = rest.dropFirst()
      let mark = LogPosition(sequence: number(), epoch: number(), chain: number())
      guard let parts = Int(exactly: number()), let fileBytes = Int64(exactly: number()) else { return nil }
      let digest = Array(rest.prefix(Self.digestBytes))
      rest = rest.dropFirst(Self.digestBytes)
      stores.append(
        Store(name: name, isSealed: flags == 1, mark: mark, parts: parts, fileBytes: fileBytes, digest: digest))
    }
    guard Set(stores.map(\.name)).count == stores.count else { return nil }
  }
}
