/// The report of a node that the log lost entries which it had acknowledged. The owner answers it with a new incarnation of
/// each database, so that no client takes the lost commits for present.
package struct LogLoss: Equatable, Sendable {
  /// A random number, which tells two reports apart.
  package let number: UInt64
  /// The node whose replica has the lost entries.
  package let node: UInt32
  /// The time of the report by the clock of that node, in seconds since 1970.
  package let seconds: Int64

  /// The end of the year 9999.
  private static let secondsMax: Int64 = 253_402_300_799

  package init(number: UInt64, node: UInt32, seconds: Int64) {
    (self.number, self.node, self.seconds) = (number, node, seconds)
  }

  /// Reads the form of ``text``.
  package init?(_ text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, let number = UInt64(words[0], radix: 16), let node = UInt32(words[1]),
      let seconds = Int64(words[2]), (0...Self.secondsMax).contains(seconds)
    else { return nil }
    self.init(number: number, node: node, seconds: seconds)
  }

  /// The report as a text: the number in hexadecimal, the node and the seconds, with spaces between them.
  package var text: String { "\(String(number, radix: 16)) \(node) \(seconds)" }
}
