import GatewayCore
import DatabaseService
import DocumentModel
import WireFormat

/// Encodes a streamed response as a JSON array with one element per message (firestore-api.md, section 1.3).
struct JSONResponseEncoder: ResponseEncoder {
  private var json: JSONWriter
  private let database: DatabaseID
  private let root: [UInt8]
  private let mask: FieldMask?

  init(_ style: JSONWriter.Style, database: DatabaseID, mask: FieldMask?) {
    json = JSONWriter(style)
    self.database = database
    root = database.documentsRootBytes
    self.mask = mask
  }

  var byteCount: Int { json.bytes.count }

  mutating func begin() { json.beginArray() }

  mutating func append(_ message: ResponseMessage) throws {
    json.beginObject()
    switch message.content {
    case .nothing: break
    case .document(let key, let document):
      json.key("document")
      try json.append(key, document, root: root, mask: mask)
    case .found(let key, let document):
      json.key("found")
      try json.append(key, document, root: root, mask: mask)
    case .missing(let key):
      json.key("missing")
      json.name(key, in: database)
    case .aggregates(let values):
      json.key("result")
      json.beginObject()
      json.key("aggregateFields")
      json.beginObject()
      for (alias, value) in values {
        json.key(alias)
        try DocumentJSON.append(value, to: &json)
      }
      json.endObject()
      json.endObject()
    }
    if let transaction = message.transaction {
      json.key("transaction")
      json.string(Base64.encode(transaction.bytes))
    }
    if message.skippedResults > 0 {
      json.key("skippedResults")
      json.number(message.skippedResults)
    }
    if let metrics = message.explainMetrics { json.explainMetrics(metrics) }
    if let readTime = message.readTime {
      json.key("readTime")
      json.timestamp(readTime)
    }
    json.endObject()
  }

  /// Writes a line break, which JSON allows between elements.
  mutating func idle() { json.bytes.append(UInt8(ascii: "\n")) }

  mutating func end() { json.endArray() }

  /// Writes the error as the last element, because the HTTP status was already sent.
  mutating func fail(_ status: Status) {
    ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
    json.endArray()
  }

  mutating func take(into out: inout [UInt8]) {
    out.append(contentsOf: json.take())
  }
}
