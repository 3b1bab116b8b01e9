import LogEngine
package import SharedLog

/// A message of the stream in which the owner sends its entries to another node.
///
/// A message is the length of the rest (4 bytes), its kind (1), and its contents. Numbers are little-endian:
///
/// | kind | contents |
/// | --- | --- |
/// | 1, entry | kind of the entry (1), sequence, epoch, chain (8 each), body |
/// | 2, answer | number of the question, sequence, configuration (8 each) |
/// | 3, configuration | its version (8) |
/// | 4, behind | none |
package enum EntryMessage: Equatable, Sendable {
  /// The next entry of the log.
  case entry(SharedEntry)
  /// The sequence up to which a read must have the log to show everything that the owner had acknowledged when it received a
  /// question. The configuration was in force, or a later one is. ``EntryFeed/ownerOnly`` in its place forbids the read.
  case answer(UInt64, sequence: UInt64, configuration: Int64)
  /// A configuration is in force at the owner, or ``EntryFeed/ownerOnly``: other nodes may not read documents.
  case configuration(Int64)
  /// The owner does not keep the entry that should follow. The reader finds it in the log, and asks again.
  case behind

  /// The longest message, in bytes: that of the greatest commit, and more.
  package static let bytesMax = 256 << 20
  private static let entryHeadBytes = 25

  /// Appends the encoded form.
  package func encode(into bytes: inout [UInt8]) {
    let start = bytes.count
    bytes += [0, 0, 0, 0]
    switch self {
    case .entry(let entry):
      bytes.append(1)
      bytes.append(entry.kind.rawValue)
      for number in [entry.position.sequence, entry.position.epoch, entry.position.chain] {
        Self.append(number, to: &bytes)
      }
      bytes += entry.body
    case .answer(let number, let sequence, let configuration):
      bytes.append(2)
      Self.append(number, to: &bytes)
      Self.append(sequence, to: &bytes)
      Self.append(UInt64(bitPattern: configuration), to: &bytes)
    case .configuration(let configuration):
      bytes.append(3)
      Self.append(UInt64(bitPattern: configuration), to: &bytes)
    case .behind: bytes.append(4)
    }
    let count = UInt32(bytes.count - start - 4)
    for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: count >> (8 * UInt32(index))) }
  }

  /// Decodes the part of a message after its length. Returns `nil` if it is malformed.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard let kind = bytes.first else { return nil }
    let rest = bytes.dropFirst()
    switch (kind, rest.count) {
    case (1, Self.entryHeadBytes...):
      guard let kind = rest.first.flatMap(SharedEntry.Kind.init) else { return nil }
      let numbers = (0..<3).map { Self.number(rest.dropFirst(1 + 8 * $0)) }
      self = .entry(
        SharedEntry(
          kind: kind, position: LogPosition(sequence: numbers[0], epoch: numbers[1], chain: numbers[2]),
          body: Array(rest.dropFirst(Self.entryHeadBytes))))
    case (2, 24):
      self = .answer(
        Self.number(rest), sequence: Self.number(rest.dropFirst(8)),
        configuration: Int64(bitPattern: Self.number(rest.dropFirst(16))))
    case (3, 8): self = .configuration(Int64(bitPattern: Self.number(rest)))
    case (4, 0): self = .behind
    default: return nil
    }
  }

  private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    for shift in stride(from: 0, to: 64, by: 8) as StrideTo<UInt64> {
      bytes.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  /// Reads the first 8 bytes.
  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// Collects the bytes of a stream of ``EntryMessage``s.
package struct EntryMessageReader: Sendable {
  /// The stream is not one of such messages.
  package struct Malformed: Error, Equatable {
    package init() {}
  }

  private var bytes: [UInt8] = []
  private var start = 0

  package init() {}

  /// Adds bytes.
  package mutating func append(_ more: UnsafeRawBufferPointer) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(contentsOf: more)
  }

  /// Takes the next message, or returns `nil` if it is not complete.
  /// - Throws: ``Malformed``.
  package mutating func next() throws(Malformed) -> EntryMessage? {
    guard bytes.count - start >= 4 else { return nil }
    let count = (0..<4).reversed().reduce(0) { $0 << 8 | Int(bytes[start + $1]) }
    guard count <= EntryMessage.bytesMax else { throw Malformed() }
    guard bytes.count - start - 4 >= count else { return nil }
    guard let message = EntryMessage(bytes[start + 4..<start + 4 + count]) else { throw Malformed() }
    start += 4 + count
    return message
  }
}
