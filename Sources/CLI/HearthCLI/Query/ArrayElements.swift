/// Splits a JSON array of objects that arrives in pieces into its elements. Memory: one element at a time.
struct ArrayElements {
  /// The maximum length of an element, in bytes: many times that of the largest document in a response.
  static let bytesMax = 64 << 20

  private var element: [UInt8] = []
  private var depth = 0
  private var isInString = false
  private var isEscaped = false

  /// Whether the end of the array has arrived.
  private(set) var isComplete = false

  /// Passes every element that a piece completes to `body`.
  /// - Throws: ``CommandFailure`` if an element is too long, or the error of `body`.
  mutating func feed(_ piece: [UInt8], _ body: ([UInt8]) throws -> Void) throws {
    var start = depth > 1 ? 0 : nil as Int?
    for (index, byte) in piece.enumerated() {
      if isInString {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isInString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isInString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        if depth == 2 { start = index }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { isComplete = true }
        guard depth == 1, let from = start else { continue }
        element += piece[from...index]
        start = nil
        try body(element)
        element.removeAll(keepingCapacity: element.capacity <= 1 << 20)
      default: break
      }
    }
    if let start { element += piece[start...] }
    guard element.count <= Self.bytesMax else {
      throw CommandFailure.failed("the server's response contains an element longer than \(Self.bytesMax) bytes")
    }
  }
}
