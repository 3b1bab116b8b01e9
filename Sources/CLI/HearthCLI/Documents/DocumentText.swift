import DocumentModel
import FixtureTree
import WireFormat

/// Formats documents: as readable text for people, and as the API's JSON for programs.
struct DocumentText {
  let database: DatabaseID

  /// Returns a document on several lines: its path, the time of the last change, and the fields in fixture form.
  /// - Throws: `WireError` if a field cannot be written.
  func page(_ document: ServerClient.Found) throws -> [UInt8] {
    var head = Terminal.output.bold(TerminalText.line(document.key.path.text))
    if let time = document.updateTime { head += Terminal.output.faint("  (updated \(time))") }
    var fields: [UInt8] = []
    try FixtureFields.append(document.fields, database: database, to: &fields)
    // The output stays valid JSON, because people copy it into `hearth set`.
    return Array("\(head)\n\(TerminalText.json(String(decoding: fields, as: UTF8.self)))\n".utf8)
  }

  /// Returns a document as the API's JSON, followed by a line feed.
  /// - Throws: `WireError` if a field cannot be written.
  func json(_ document: ServerClient.Found, _ style: JSONWriter.Style) throws -> [UInt8] {
    var json = JSONWriter(style)
    var failure: WireError?
    let root = Array(database.documentsRoot.utf8)
    root.withUnsafeBytes { root in
      document.key.path.bytes.withUnsafeBytes { path in
        document.fields.bytes.withUnsafeBytes { fields in
          do throws(WireError) {
            let epoch = Timestamp(uncheckedMicroseconds: 0)
            try DocumentJSON.append(
              EncodedDocument(
                root: root, path: path, fields: fields, createTime: document.createTime ?? epoch,
                updateTime: document.updateTime ?? epoch),
              to: &json)
          } catch { failure = error }
        }
      }
    }
    if let failure { throw failure }
    json.bytes.append(UInt8(ascii: "\n"))
    return json.bytes
  }

  /// Returns a document's ID, made safe for a terminal.
  static func id(of document: ServerClient.Found) -> String { TerminalText.line(document.key.path.id) }

  /// Returns a document as one line: its ID and its fields, cut to the width of the terminal.
  /// - Throws: `WireError` if a field cannot be written.
  func row(_ document: ServerClient.Found, idWidth: Int) throws -> [UInt8] {
    let id = Self.id(of: document)
    var line: [UInt8] = []
    try FixtureFields.appendLine(document.fields, database: database, to: &line)
    var fields = TerminalText.json(String(decoding: line, as: UTF8.self))
    let idColumns = max(idWidth, TextWidth.of(id))
    if let columns = Terminal.output.columns { fields = TextWidth.cut(fields, to: max(10, columns - idColumns - 2)) }
    let padding = String(repeating: " ", count: idColumns - TextWidth.of(id) + 2)
    return Array("\(Terminal.output.bold(id))\(padding)\(fields)\n".utf8)
  }
}
