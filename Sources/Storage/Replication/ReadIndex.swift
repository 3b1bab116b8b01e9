package import LogEngine

/// The owner's answer to the question how far the log is: a read that shows the log up to it, by the configuration, shows
/// everything that the owner had acknowledged when it received the question.
package struct ReadIndex: Equatable, Sendable {
  /// The comparison of a replica with an index.
  package enum Comparison: Equatable, Sendable {
    /// The replica has the log up to it, and those who must know of it know it.
    case reached
    /// The replica has applied less.
    case ahead
    /// The replica has other entries, as one with commits that PostgreSQL lost, or the index is too old to tell.
    case unknown
  }

  /// The position of the newest entry. Its hash is of all entries up to it.
  package let position: LogPosition
  /// The version of the configuration that is in force at the owner, or ``EntryFeed/ownerOnly``.
  package let configuration: Int64

  /// Creates an index.
  package init(_ position: LogPosition, configuration: Int64) {
    self.position = position
    self.configuration = configuration
  }

  /// The size of an answer, in bytes: the number of the question, the sequence, epoch and hash of the position, and the
  /// configuration, each in 8 bytes, little-endian.
  package static let answerBytes = 40

  /// Appends the answer to a question.
  package func encode(answering number: UInt64, to bytes: inout [UInt8]) {
    for value in [
      number, position.sequence, position.epoch, position.chain, UInt64(bitPattern: configuration),
    ] {
      withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
  }

  /// Reads an answer of ``answerBytes`` bytes.
  package static func decode(_ bytes: UnsafeRawBufferPointer) -> (number: UInt64, index: ReadIndex) {
    func value(_ place: Int) -> UInt64 {
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * place, as: UInt64.self))
    }
    let position = LogPosition(sequence: value(1), epoch: value(2), chain: value(3))
    return (value(0), ReadIndex(position, configuration: Int64(bitPattern: value(4))))
  }
}
