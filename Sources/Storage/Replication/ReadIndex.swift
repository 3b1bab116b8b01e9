/// The owner's answer to the question how far the log is: a read that shows the log up to it, by the configuration, shows
/// everything that the owner had acknowledged when it received the question.
package struct ReadIndex: Equatable, Sendable {
  /// The epoch of the owner.
  package let epoch: UInt64
  /// The sequence of the newest entry, which is of that epoch.
  package let sequence: UInt64
  /// The version of the configuration that is in force at the owner, or ``EntryFeed/ownerOnly``.
  package let configuration: Int64

  /// Creates an index.
  package init(epoch: UInt64, sequence: UInt64, configuration: Int64) {
    self.epoch = epoch
    self.sequence = sequence
    self.configuration = configuration
  }

  /// The size of an answer, in bytes: the number of the question and the members, each in 8 bytes, little-endian.
  package static let answerBytes = 32

  /// Appends the answer to a question.
  package func encode(answering number: UInt64, to bytes: inout [UInt8]) {
    for value in [number, epoch, sequence, UInt64(bitPattern: configuration)] {
      withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
  }

  /// Reads an answer of ``answerBytes`` bytes.
  package static func decode(_ bytes: UnsafeRawBufferPointer) -> (number: UInt64, index: ReadIndex) {
    func value(_ place: Int) -> UInt64 {
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * place, as: UInt64.self))
    }
    return (value(0), ReadIndex(epoch: value(1), sequence: value(2), configuration: Int64(bitPattern: value(3))))
  }
}
