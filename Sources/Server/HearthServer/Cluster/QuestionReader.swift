/// Collects the questions of another node about the log: numbers of 8 bytes, little-endian.
struct QuestionReader {
  private var bytes: [UInt8] = []

  /// Adds bytes of the body of the request.
  mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

  /// Takes the number of the next question, or returns `nil` if it is not complete.
  mutating func next() -> UInt64? {
    guard bytes.count >= 8 else { return nil }
    defer { bytes.removeFirst(8) }
    return bytes[..<8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
