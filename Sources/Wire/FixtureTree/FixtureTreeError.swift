/// Why a file of documents could not be read: where, what is wrong, and what to do about it.
package struct FixtureTreeError: Error, Equatable, Sendable {
  /// The name of the file, as the caller gave it.
  package var file: String
  /// The line, from 1; 0 where the failure has no place in the text, such as a file that cannot be opened.
  package var line: Int
  /// The column, from 1, in UTF-8 bytes.
  package var column: Int
  /// The path of the document or collection that was being read; empty at the root.
  package var path: String
  /// The path of the field that was being read; empty outside of one.
  package var field: String
  /// What is wrong and what to do.
  package var message: String

  /// Joins the parts.
  package init(
    file: String, line: Int = 0, column: Int = 0, path: String = "", field: String = "", message: String
  ) {
    self.file = file
    self.line = line
    self.column = column
    self.path = path
    self.field = field
    self.message = message
  }

  /// How much of a text from the file an error repeats, in bytes.
  static let quotedBytesMax = 80

  /// A text from the file as an error repeats it: quoted, cut where it is long.
  static func quote(_ text: UnsafeRawBufferPointer) -> String {
    let isCut = text.count > quotedBytesMax
    return "\"\(String(decoding: text.prefix(quotedBytesMax), as: UTF8.self))\(isCut ? "…" : "")\""
  }
}

extension FixtureTreeError: CustomStringConvertible {
  /// Such as `fixtures/x.json:12:5: users/u1: field "name": …`.
  package var description: String {
    var text = line > 0 ? "\(file):\(line):\(column): " : "\(file): "
    if !path.isEmpty { text += "\(path): " }
    if !field.isEmpty { text += "field \"\(field)\": " }
    return text + message
  }
}
