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
