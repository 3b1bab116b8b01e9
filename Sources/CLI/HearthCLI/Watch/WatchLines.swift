import DocumentModel
import FixtureTree
import WireFormat

/// Formats the messages of feeds as lines: `+ users/ann {…}`, `~ users/ann age: 37 → 38`, `- users/ann`.
///
/// It remembers up to 64 MiB of documents, so that it can show which fields changed. It shows other documents
/// completely.
struct WatchLines {
  private let database: DatabaseID
  private let terminal: Terminal
  /// The remembered documents of the results.
  private var known: [DocumentKey: EncodedFields] = [:]
  private var knownBytes = 0
  private static let knownBytesMax = 64 << 20
  /// Whether every document of the results is remembered.
  private var isComplete: Bool
  /// After a reset, the documents that have been sent again; `nil` once the results are complete.
  private var renewed: Set<DocumentKey>?

  /// Starts a feed. If it `isResumed` from a token, the results contain documents that are not remembered.
  init(of database: DatabaseID, isResumed: Bool, on terminal: Terminal = .output) {
    self.database = database
    isComplete = !isResumed
    self.terminal = terminal
  }

  /// Returns the lines for a message, which are empty for most messages without a document.
  /// - Throws: `WireError` or `ModelError` if a document is malformed.
  mutating func text(of message: JSONValue, _ client: ServerClient) throws -> String {
    if let change = message.member("documentChange") {
      guard let document = try change.member("document").map(client.found) else { return "" }
      return change.member("targetIds")?.array.isEmpty == false
        ? try changed(document) : try removed(document.key)
    }
    if let departure = message.member("documentDelete") ?? message.member("documentRemove") {
      guard let name = departure.member("document")?.text else { return "" }
      return try removed(ResourceName.document(Array(name.utf8)).1)
    }
    if let change = message.member("targetChange") {
      switch change.member("targetChangeType")?.text {
      case "RESET":
        renewed = []
        isComplete = true
      case "CURRENT": return try completed()
      default: break
      }
    }
    if let changes = message.member("changes") {
      return try changes.array.map { try text(ofChange: $0, client) }.joined()
    }
    return ""
  }

  // MARK: Documents of a target

  private mutating func changed(_ document: ServerClient.Found) throws -> String {
    let isAgain = renewed?.insert(document.key).inserted != nil
    let before = known[document.key]
    remember(document.key, document.fields)
    guard let before else {
      let isNew = isComplete || document.createTime == document.updateTime
      return try shown(isNew ? "+" : "~", document.key, document.fields)
    }
    if isAgain, before.bytes == document.fields.bytes { return "" }
    return try updated(document.key, before, document.fields)
  }

  private mutating func removed(_ key: DocumentKey) throws -> String {
    forget(key)
    return gone(key)
  }

  /// Returns lines for the documents that are no longer in the results, when the results are complete after a reset.
  private mutating func completed() throws -> String {
    guard let renewed else { return "" }
    self.renewed = nil
    let lost = known.keys.filter { !renewed.contains($0) }.sorted { $0.path.text < $1.path.text }
    for key in lost { forget(key) }
    return lost.map(gone).joined()
  }

  private mutating func remember(_ key: DocumentKey, _ fields: EncodedFields) {
    forget(key)
    guard knownBytes + fields.bytes.count <= Self.knownBytesMax else {
      isComplete = false
      return
    }
    known[key] = fields
    knownBytes += fields.bytes.count + key.path.bytes.count
  }

  private mutating func forget(_ key: DocumentKey) {
    guard let fields = known.removeValue(forKey: key) else { return }
    knownBytes -= fields.bytes.count + key.path.bytes.count
  }

  // MARK: Changes of a database

  private func text(ofChange change: JSONValue, _ client: ServerClient) throws -> String {
    let before = try change.member("before").map(client.found)
    let after = try change.member("after").map(client.found)
    switch (before, after) {
    case (nil, let after?): return try shown("+", after.key, after.fields)
    case (let before?, let after?): return try updated(after.key, before.fields, after.fields)
    case (let before?, nil): return gone(before.key)
    case (nil, nil): return ""
    }
  }

  // MARK: Lines

  private func shown(_ sign: String, _ key: DocumentKey, _ fields: EncodedFields) throws -> String {
    var line: [UInt8] = []
    try FixtureFields.appendLine(fields, database: database, to: &line)
    return self.line(sign, key, TerminalText.json(String(decoding: line, as: UTF8.self)))
  }

  private func gone(_ key: DocumentKey) -> String { line("-", key, "") }

  /// Returns the line of a changed document: each field that differs, with its old and its new value.
  private func updated(_ key: DocumentKey, _ before: EncodedFields, _ after: EncodedFields) throws -> String {
    let (old, new) = (try before.decoded(), try after.decoded())
    var parts: [String] = []
    for (name, value) in new.entries {
      let title = TableCell(plain: name).text
      let shown = TableCell(value, in: database).text
      switch old[name] {
      case nil: parts.append("\(title): \(shown) (new)")
      case let was? where was != value: parts.append("\(title): \(TableCell(was, in: database).text) → \(shown)")
      default: break
      }
    }
    for (name, _) in old.entries where new[name] == nil { parts.append("\(TableCell(plain: name).text): (gone)") }
    return line("~", key, parts.isEmpty ? "(same fields)" : parts.joined(separator: ", "))
  }

  private func line(_ sign: String, _ key: DocumentKey, _ rest: String) -> String {
    let head = "\(sign) \(terminal.bold(TableCell(plain: key.path.text, columnsMax: 400).text))"
    return rest.isEmpty ? head + "\n" : "\(head)  \(rest)\n"
  }
}
