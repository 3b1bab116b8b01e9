import Glibc
package import KeyValue
package import LMDBEngine

/// A store that can keep a ``LogMark`` beside its entries: the lower part of a ``LoggedStore``.
package protocol MarkedStore: KeyValueStore {
  /// The path of the data file, for messages.
  var path: String { get }

  /// Returns the mark, or `nil` if the store never had a log.
  /// - Throws: ``StorageError`` if the read fails.
  func logMark() throws(StorageError) -> LogMark?

  /// Runs a write transaction as ``KeyValueStore/write(_:)``, and stores the mark that `body` returns, if any, in the
  /// same transaction.
  /// - Throws: the error of `body`, or ``StorageError`` if the commit fails.
  func writeMarked(_ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?) throws(StorageError)

  /// Writes a compact copy of the newest state, with its mark, to a descriptor. The state is that of a moment before the
  /// first byte is written.
  /// - Throws: ``StorageError`` if reading or writing fails.
  func copy(to descriptor: Int32) throws(StorageError)
}

extension MarkedStore {
  /// Fails: only a data file can be copied.
  /// - Throws: ``StorageError/system(operation:path:code:)``.
  package func copy(to descriptor: Int32) throws(StorageError) {
    throw .system(operation: "copy", path: path, code: ENOTSUP)
  }
}

extension LMDBStore: MarkedStore {}

extension LogPosition {
  /// The position in a mark, with the secret of the log.
  func encoded(secret: UInt64) -> [UInt8] {
    [sequence, epoch, chain, secret].flatMap { number in withUnsafeBytes(of: number.littleEndian) { [UInt8]($0) } }
  }

  /// Reads a position and a secret. Returns `nil` if the length is wrong, or no log can have the position.
  static func decode(_ bytes: [UInt8]) -> (position: LogPosition, secret: UInt64)? {
    guard bytes.count == 32 else { return nil }
    return bytes.withUnsafeBytes { bytes in
      let position = LogPosition(
        sequence: bytes.littleEndian(0), epoch: bytes.littleEndian(8), chain: bytes.littleEndian(16))
      return position.isPossible ? (position, bytes.littleEndian(24)) : nil
    }
  }
}
