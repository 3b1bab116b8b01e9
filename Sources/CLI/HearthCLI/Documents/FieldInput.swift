import DocumentModel
import FixtureTree
import Glibc

/// Reads the fields that a person gives to `set` and `update`.
enum FieldInput {
  static let details = """
    JSON holds the fields as a fixture tree writes them: {"$timestamp": "2025-03-27T14:30:00Z"}, {"$ref": "users/u1"},
    {"$bytes": "base64"}, {"$geo": [45.46, 9.19]}, {"$double": 1}, {"$vector": [1, 2]}. `-` reads standard input.
    """

  private static let bytesMax = 16 << 20

  /// The fields in a text; `-` stands for standard input.
  /// - Throws: `FixtureTreeError` when it is no object of legal fields.
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
        throw CommandFailure.data("standard input: longer than \(bytesMax) bytes, which no document may have")
      }
    }
  }
}
