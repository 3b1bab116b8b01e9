import Basics

/// The name of a data file of a project, as entries of the log carry it.
///
///     accounts
///     files
///     documents/DATABASE        such as documents/(default)
///
/// Names come from other nodes, and become paths. The name of a database is a valid ``DatabaseIDPart``.
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
    guard DatabaseIDPart.isValid(database) else { return nil }
    self.init(unchecked: Self.documentsPrefix + database)
  }

  /// The database whose documents the store has, or `nil` if it has something else.
  package var database: String? {
    text.utf8.starts(with: Self.documentsPrefix.utf8) ? String(text.dropFirst(Self.documentsPrefix.count)) : nil
  }

  /// The whole name.
  package var description: String { text }
}
