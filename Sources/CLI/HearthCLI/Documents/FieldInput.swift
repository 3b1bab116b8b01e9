import DocumentModel
import FixtureTree
import Glibc

/// Reads the fields that are given to `add`, `set` and `update`.
enum FieldInput {
  static let details = """
    JSON is an object of fields. Types that JSON lacks are written as in fixture files:
    `{"$timestamp": "2025-03-27T14:30:00Z"}`, `{"$ref": "users/u1"}` and so on. With `-`, the verb reads the JSON from
    standard input.

    \(ValueText.details)
    """

  private static let bytesMax = 16 << 20

  /// Returns the fields in a text, or in standard input if the text is `-`.
  /// - Throws: `FixtureTreeError` if the text is not a JSON object of legal fields; ``CommandFailure`` if standard
  ///   input cannot be read or is too long.
  static func fields(
    _ text: String, of key: DocumentKey, in database: DatabaseID, source: String = "the fields"
  ) throws -> EncodedFields {
    let isInput = text == "-"
    let bytes = isInput ? try readInput() : Array(text.utf8)
    return try FixtureFields.parse(
      bytes, source: isInput ? "standard input" : source, key: key, database: database)
  }

  private static func readInput() throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      if count == 0 { return bytes }
      guard count > 0 else {
        if errno == EINTR { continue }
        throw CommandFailure.failed("standard input cannot be read: \(String(cString: strerror(errno)))")
      }
      bytes += buffer[..<count]
      guard bytes.count <= bytesMax else {
        throw CommandFailure.data("standard input: longer than \(bytesMax) bytes, the limit for a document")
      }
    }
  }
}
