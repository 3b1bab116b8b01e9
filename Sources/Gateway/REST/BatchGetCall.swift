import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

// BatchGetDocuments.
extension RESTDialect {
  func batchGetDocuments(_ call: RESTCall, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    guard call.target.segmentCount == 0 else { return call.reply.sendText(404, "Not Found\n") }
    var batch = BatchGetDocumentsRequest([])
    var mask: FieldMask?
    var moment = RequestedMoment()
    try decode(request) { (decoder, root) throws(WireError) in
      guard let root else { return }
      var members = try decoder.members(of: root, "google.firestore.v1.BatchGetDocumentsRequest")
      while let (name, value) = members.next() {
        switch name {
        case "documents":
          decoder.enter("documents")
          batch.keys = try Self.keys(value, in: call.database, decoder)
          decoder.leave()
        case "mask":
          decoder.enter("mask")
          mask = try decoder.documentMask(value)
          decoder.leave()
        case "database", "requestOptions", "request_options": break
        default: try moment.read(name, value, decoder)
        }
      }
    }
    batch.consistency = moment.consistency
    batch.newTransaction = moment.newTransaction
    let cursor = try service.batchGetDocuments(batch, in: call.database)
    let source = BatchGetSource(cursor, mask: mask, call)
    // Most answers are one slice, and errors that show in it have a status of their own.
    var first: [UInt8] = []
    if try source.appendSlice(to: &first) {
      call.reply.sendJSON(first)
    } else {
      source.prepend(first)
      call.reply.streamJSON(from: source)
    }
  }

  private static func keys(
    _ value: JSONValue, in database: DatabaseID, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> [DocumentKey] {
    var keys: [DocumentKey] = []
    var names = try decoder.elements(of: value)
    while let name = names.next() {
      decoder.element(keys.count)
      let (named, key) = try decoder.documentName(try decoder.string(name, ""))
      try check(named, is: database)
      keys.append(key)
    }
    return keys
  }
}

/// The answer to a batchGet as a JSON array, slice by slice.
private final class BatchGetSource: BodySource {
  private let cursor: BatchGetDocumentsCursor
  private let mask: FieldMask?
  private let call: RESTCall
  private var json: JSONWriter
  private var prepared: [UInt8] = []
  private var isBegun = false

  init(_ cursor: BatchGetDocumentsCursor, mask: FieldMask?, _ call: RESTCall) {
    self.cursor = cursor
    self.mask = mask
    self.call = call
    json = JSONWriter(call.style)
  }

  /// Puts a slice that was already made before those to come.
  func prepend(_ slice: [UInt8]) { prepared = slice }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    if !prepared.isEmpty {
      out.append(contentsOf: prepared)
      prepared = []
      return .more
    }
    do {
      return try appendSlice(to: &out) ? .finished : .more
    } catch {
      // The status is sent already: the error is the last element.
      let status = Status(error, database: call.database)
      ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
      json.endArray()
      out.append(contentsOf: json.take())
      return .finished
    }
  }

  /// Appends about a slice; returns whether it was the last.
  func appendSlice(to out: inout [UInt8]) throws -> Bool {
    if !isBegun {
      isBegun = true
      json.beginArray()
      if let transaction = cursor.transaction {
        json.beginObject()
        json.key("transaction")
        json.string(Base64.encode(transaction.bytes))
        json.endObject()
      }
    }
    try cursor.slice { key, document in
      json.beginObject()
      if let document {
        json.key("found")
        try json.append(key, document, in: call.database, mask: mask)
      } else {
        json.key("missing")
        json.name(key, in: call.database)
      }
      json.key("readTime")
      json.timestamp(cursor.readTime)
      json.endObject()
      return json.bytes.count < Exchange.sliceBytes
    }
    let isLast = cursor.isAtEnd
    if isLast { json.endArray() }
    out.append(contentsOf: json.take())
    return isLast
  }
}
