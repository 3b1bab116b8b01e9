/// The name of a data file of a project, as entries of the log carry it.
///
///     accounts
///     files
///     documents/DATABASE        such as documents/(default)
///
/// Names come from other nodes, and become paths. A database has 1 to 100 bytes: ASCII letters, digits, and
/// `_-.():~`, as in `DatabaseID`. It is not `.` or `..`.
package struct StoreName: Hashable, Sendable, CustomStringConvertible {
  /// The whole name.
  package let text: String

  /// The accounts of the project.
  package static let accounts = StoreName(unchecked: "accounts")
  /// The metadata of files.
  package static let files = StoreName(unchecked: "files")

  /// The longest name, in bytes.
  package static let bytesMax = 110
  private static let documentsPrefix = "documents/"
  private static let databaseBytesMax = 100

  private init(unchecked text: String) { self.text = text }

  /// Reads a name. Returns `nil` if it has another form.
  package init?(_ text: String) {
    if text.utf8.elementsEqual(Self.accounts.text.utf8) || text.utf8.elementsEqual(Self.files.text.utf8) {
      self.init(unchecked: text)
    } else if text.utf8.starts(with: Self.documentsPrefix.utf8) {
      self.init(database: String(text.dropFirst(Self.documentsPrefix.count)))
    } else {
      return nil
    }
  }

  /// Makes the name of the documents of a database. Returns `nil` if the name of the database has another form.
  package init?(database: String) {
    guard (1...Self.databaseBytesMax).contains(database.utf8.count), database != ".", database != "..",
      database.utf8.allSatisfy(Self.isPermitted)
    else { return nil }
    self.init(unchecked: Self.documentsPrefix + database)
  }

  /// The database whose documents the store has, or `nil` if it has something else.
  package var database: String? {
    text.utf8.starts(with: Self.documentsPrefix.utf8) ? String(text.dropFirst(Self.documentsPrefix.count)) : nil
  }

  /// The whole name.
  package var description: String { text }

  private static func isPermitted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_-.():~".utf8.contains(byte)
    }
  }
}
