/// A pattern of ``HearthConfiguration/enterpriseDatabases``: the ID of a database, or its beginning and `*`. Every
/// request compares its database with the patterns.
struct DatabasePattern: Sendable {
  private let text: [UInt8]
  private let isPrefix: Bool

  init(_ pattern: String) {
    isPrefix = pattern.utf8.last == UInt8(ascii: "*")
    text = Array(isPrefix ? pattern.utf8.dropLast() : pattern.utf8[...])
  }

  /// Whether the pattern matches the ID of a database. Database IDs are ASCII.
  func matches(_ database: String) -> Bool {
    var database = database
    return database.withUTF8 { bytes in
      bytes.count >= text.count && (isPrefix || bytes.count == text.count)
        && zip(bytes, text).allSatisfy { $0 == $1 }
    }
  }
}
