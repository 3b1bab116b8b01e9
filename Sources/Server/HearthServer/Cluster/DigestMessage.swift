import Basics
package import LogEngine
package import Replication

/// A line of a node's response to a question about the content of its replica; see ``DigestHandler``.
///
///     at SEQUENCE                        the replica is there
///     passed SEQUENCE                    it is after the position that was named
///     late SEQUENCE                      it did not get to that position in time
///     busy                               another comparison is under way
///     failed TEXT                        it cannot be read
///     bytes COUNT                        so much was read until now
///     store NAME ENTRIES BYTES DIGEST    a store at the position; the digest is hexadecimal
///     end SEQUENCE EPOCH CHAIN           the position, after all stores
package enum DigestMessage: Equatable, Sendable {
  case at(UInt64)
  case passed(UInt64)
  case late(UInt64)
  case busy
  case failed(String)
  case bytes(Int)
  case store(ReplicaDigest.Store)
  case end(LogPosition)

  /// The path of the question how far the log is.
  package static let path = "/digest"

  /// Returns the target of the question about the content at a sequence.
  package static func target(at sequence: UInt64) -> String { "\(path)?at=\(sequence)" }

  /// Numbers from here on are refused, so that sums of others cannot overflow.
  private static let sequenceMax: UInt64 = 1 << 60
  private static let countMax = 1 << 50

  /// The longest line, in bytes. A reader ignores a longer one.
  package static let bytesMax = 4096

  /// The line, with its line feed.
  package var line: String {
    let text =
      switch self {
      case .at(let sequence): "at \(sequence)"
      case .passed(let sequence): "passed \(sequence)"
      case .late(let sequence): "late \(sequence)"
      case .busy: "busy"
      case .failed(let text): "failed \(text.prefix(1000).split(whereSeparator: \.isNewline).joined(separator: " "))"
      case .bytes(let count): "bytes \(count)"
      case .store(let store): "store \(store.name) \(store.entries) \(store.bytes) \(Hexadecimal.text(store.digest))"
      case .end(let position): "end \(position.sequence) \(position.epoch) \(position.chain)"
      }
    return text + "\n"
  }

  /// Reads a line without its line feed. Returns `nil` if it has another form.
  package init?(_ line: some StringProtocol) {
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    func number(_ place: Int) -> UInt64? { place < words.count ? UInt64(words[place]) : nil }
    func sequence(_ place: Int) -> UInt64? { number(place).flatMap { $0 < Self.sequenceMax ? $0 : nil } }
    let message: DigestMessage? =
      switch (words.first, words.count) {
      case ("at", 2): sequence(1).map { .at($0) }
      case ("passed", 2): sequence(1).map { .passed($0) }
      case ("late", 2): sequence(1).map { .late($0) }
      case ("busy", 1): .busy
      case ("failed", _): .failed(words.dropFirst().joined(separator: " "))
      case ("bytes", 2): Self.count(words[1]).map { .bytes($0) }
      case ("store", 5): Self.store(words)
      case ("end", 4): Self.end(sequence(1), sequence(2), number(3))
      default: nil
      }
    guard let message else { return nil }
    self = message
  }

  private static func store(_ words: [some StringProtocol]) -> DigestMessage? {
    guard let name = StoreName(String(words[1])), let entries = count(words[2]), let bytes = count(words[3]),
      let digest = Hexadecimal.bytes(words[4]), digest.count == 32
    else { return nil }
    return .store(ReplicaDigest.Store(name: name, entries: entries, bytes: bytes, digest: digest))
  }

  private static func count(_ text: some StringProtocol) -> Int? {
    Int(text).flatMap { (0..<countMax).contains($0) ? $0 : nil }
  }

  private static func end(_ sequence: UInt64?, _ epoch: UInt64?, _ chain: UInt64?) -> DigestMessage? {
    guard let sequence, let epoch, let chain else { return nil }
    return .end(LogPosition(sequence: sequence, epoch: epoch, chain: chain))
  }
}
