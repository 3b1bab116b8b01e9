package import KeyValue
import LMDBEngine

/// A position in the log of one data file, with the secret that tells this log from others.
package struct LogOrigin: Equatable, Sendable {
  package var position: LogPosition
  package var secret: UInt64

  /// The length of ``bytes``.
  package static let byteCount = 32

  package init(position: LogPosition, secret: UInt64) { (self.position, self.secret) = (position, secret) }

  /// Reads the form that the mark of a data file has. Returns `nil` if the length is wrong.
  package init?(_ bytes: [UInt8]) {
    guard let (position, secret) = LogPosition.decode(bytes) else { return nil }
    self.init(position: position, secret: secret)
  }

  /// The form that the mark of a data file has.
  package var bytes: [UInt8] { position.encoded(secret: secret) }
}

extension MarkedStore {
  /// Returns the position in the log up to which the store has every commit, or `nil` if it never had a log.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the mark is not valid; ``StorageError`` if the read fails.
  package func logOrigin() throws(StorageError) -> LogOrigin? {
    guard let mark = try logMark() else { return nil }
    guard let origin = LogOrigin(mark.position) else {
      throw .corruption(path: path, detail: "the position in the log has \(mark.position.count) bytes, not 32")
    }
    return origin
  }
}
