import DocumentModel
import FixtureTree
import WireFormat

/// Turns the messages of feeds into lines for people: `+ users/ann {…}`, `~ users/ann age: 37 → 38`, `- users/ann`.
///
/// Remembers documents so that it can say what changed in them, up to some size; what it does not remember it shows
/// whole.
struct WatchLines {
  private let database: DatabaseID
  private let terminal: Terminal
  /// The documents of the results, as far as they are remembered.
  private var known: [DocumentKey: EncodedFields] = [:]
  private var knownBytes = 0
  private static let knownBytesMax = 64 << 20
  /// Whether what is not remembered was not among the results.
  private var isComplete: Bool
  /// After a reset, until the results are complete: the documents that came again.
  private var renewed: Set<DocumentKey>?

  /// Starts with results of which all is told, or, where they go on from a token, of which nothing is remembered.
  init(of database: DatabaseID, isResumed: Bool, on terminal: Terminal = .output) {
    self.database = database
    isComplete = !isResumed
    self.terminal = terminal
  }

  /// The lines for a message; none for most that tell of no document.
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

  /// The results are complete: what did not come again after a reset is gone.
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

  /// The fields that differ, each with what it was and what it is.
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
