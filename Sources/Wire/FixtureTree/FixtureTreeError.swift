/// The error for a file of documents that cannot be read: the location, the mistake, and how to fix it.
package struct FixtureTreeError: Error, Equatable, Sendable {
  /// The name of the file, as given by the caller.
  package var file: String
  /// The line, from 1, or 0 if the failure has no place in the text, such as a file that cannot be opened.
  package var line: Int
  /// The column, from 1, in UTF-8 bytes.
  package var column: Int
  /// The path of the document or collection at the error; empty at the root.
  package var path: String
  /// The path of the field at the error; empty outside a field.
  package var field: String
  /// The mistake, and how to fix it.
  package var message: String

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

  /// The length at which a text from the file is truncated in an error, in bytes.
  static let quotedBytesMax = 80

  /// Returns a text from the file as errors show it: quoted, and truncated if it is long.
  static func quote(_ text: UnsafeRawBufferPointer) -> String {
    let isCut = text.count > quotedBytesMax
    return "\"\(String(decoding: text.prefix(quotedBytesMax), as: UTF8.self))\(isCut ? "…" : "")\""
  }
}

extension FixtureTreeError: CustomStringConvertible {
  /// The whole error on one line, such as `fixtures/x.json:12:5: users/u1: field "name": …`.
  package var description: String {
    var text = line > 0 ? "\(file):\(line):\(column): " : "\(file): "
    if !path.isEmpty { text += "\(path): " }
    if !field.isEmpty { text += "field \"\(field)\": " }
    return text + message
  }
}
