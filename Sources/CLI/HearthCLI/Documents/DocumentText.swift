import DocumentModel
import FixtureTree
import WireFormat

/// Shows documents: readable for people, as on the wire for machines.
struct DocumentText {
  let database: DatabaseID

  /// A document over several lines: path, time of the last change, fields as a fixture tree writes them.
  func page(_ document: ServerClient.Found) throws -> [UInt8] {
    var head = Terminal.output.bold(TerminalText.line(document.key.path.text))
    if let time = document.updateTime { head += Terminal.output.faint("  (updated \(time))") }
    var fields: [UInt8] = []
    try FixtureFields.append(document.fields, database: database, to: &fields)
    // Still JSON: people copy it into `hearth set`.
    return Array("\(head)\n\(TerminalText.json(String(decoding: fields, as: UTF8.self)))\n".utf8)
  }

  /// The wire's JSON of a document.
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

  /// A document's id as a row shows it.
  static func id(of document: ServerClient.Found) -> String { TerminalText.line(document.key.path.id) }

  /// A row of a table: id and fields, cut to the width of the terminal.
  func row(_ document: ServerClient.Found, idWidth: Int) throws -> [UInt8] {
    let id = Self.id(of: document)
    var line: [UInt8] = []
    try FixtureFields.appendLine(document.fields, database: database, to: &line)
    var fields = TerminalText.json(String(decoding: line, as: UTF8.self))
    if let columns = Terminal.output.columns, idWidth + 2 + fields.count > columns {
      fields = "\(fields.prefix(max(10, columns - idWidth - 3)))…"
    }
    let padding = String(repeating: " ", count: max(0, idWidth - id.count) + 2)
    return Array("\(Terminal.output.bold(id))\(padding)\(fields)\n".utf8)
  }
}
