import DatabaseService
import DocumentModel
import Watch
import WireFormat

/// Encodes the messages of a Listen or Write stream as JSON in ASCII, so that its length in bytes and in UTF-16 is
/// equal.
struct StreamJSONEncoder {
  private let database: DatabaseID
  private let root: [UInt8]

  init(_ database: DatabaseID) {
    self.database = database
    root = database.documentsRootBytes
  }

  /// Appends a ListenResponse. A document costs one pass over its bytes, once for all listeners that share the
  /// event.
  ///
  /// - Throws: ``WireError`` if a stored document is damaged. Then nothing is appended.
  func append(_ event: WatchEvent, to out: inout [UInt8]) throws {
    try write(to: &out) { json in
      switch event {
      case .add(let id): json.targetChange("ADD", id)
      case .remove(let id, let cause):
        json.targetChange("REMOVE", id, cause: cause.map { Status($0, database: database) })
      case .reset(let id): json.targetChange("RESET", id)
      case .current(let id, let token, let time): json.targetChange("CURRENT", id, at: (token, time))
      case .noChange(let token, let time): json.targetChange(nil, nil, at: (token, time))
      case .document(let key, .modified(let document), let id, _):
        try json.documentChange("targetIds", id) { json in try append(key, document, to: &json) }
      case .document(let key, .removed(let document?), let id, _):
        try json.documentChange("removedTargetIds", id) { json in try append(key, document, to: &json) }
      case .document(let key, .deleted, let id, let time): json.departure("documentDelete", key, root, time, id)
      case .document(let key, .removed(nil), let id, let time): json.departure("documentRemove", key, root, time, id)
      }
    }
  }

  private func append(_ key: DocumentKey, _ document: DocumentState, to json: inout JSONWriter) throws {
    switch document {
    case .stored(let document): try json.append(key, document, root: root, mask: nil)
    case .shared(let document): try document.encoded(.json, encoded).withUnsafeBytes { json.encoded($0) }
    }
  }

  /// Appends a WriteResponse.
  ///
  /// - Throws: ``WireError`` if a value cannot be encoded, which no committed value causes. Then nothing is
  ///   appended.
  func append(_ response: WriteStreamResponse, to out: inout [UInt8]) throws {
    try write(to: &out) { json in
      if !response.streamID.isEmpty {
        json.key("streamId")
        json.string(response.streamID)
      }
      json.key("streamToken")
      response.streamToken.withUnsafeBytes { json.base64($0) }
      if !response.results.isEmpty {
        json.key("writeResults")
        json.beginArray()
        for result in response.results { try DocumentJSON.append(result, to: &json) }
        json.endArray()
      }
      if let time = response.commitTime {
        json.key("commitTime")
        json.timestamp(time)
      }
    }
  }

  /// The Document message of a change event.
  private func encoded(_ document: WatchedDocument) throws -> [UInt8] {
    var text: [UInt8] = []
    try write(to: &text, inObject: false) { json in
      try EncodedDocument.with(Document(document), root: root) { (encoded) throws(WireError) in
        try DocumentJSON.append(encoded, to: &json)
      }
    }
    return text
  }

  private func write(
    to out: inout [UInt8], inObject: Bool = true, _ body: (inout JSONWriter) throws -> Void
  ) throws {
    let start = out.count
    var json = JSONWriter(.compact)
    json.escapesNonASCII = true
    swap(&json.bytes, &out)
    defer { swap(&json.bytes, &out) }
    do {
      if inObject { json.beginObject() }
      try body(&json)
      if inObject { json.endObject() }
    } catch {
      json.bytes.removeLast(json.bytes.count - start)
      throw error
    }
  }
}

extension Document {
  /// Creates the document that listeners receive.
  init(_ document: WatchedDocument) {
    self.init(
      key: document.key, fields: document.fields,
      createTime: Timestamp(uncheckedMicroseconds: document.createVersion),
      updateTime: Timestamp(uncheckedMicroseconds: document.updateVersion))
  }
}

extension JSONWriter {
  /// Appends the member `targetChange`. Default values are omitted: NO_CHANGE, and an empty list of targets.
  fileprivate mutating func targetChange(
    _ type: StaticString?, _ id: Int32?, cause: Status? = nil, at point: (token: [UInt8], readTime: Timestamp)? = nil
  ) {
    key("targetChange")
    beginObject()
    if let type {
      key("targetChangeType")
      string(UnsafeRawBufferPointer(start: type.utf8Start, count: type.utf8CodeUnitCount))
    }
    if let id { target("targetIds", id) }
    if let cause {
      key("cause")
      beginObject()
      key("code")
      number(cause.code.rawValue)
      key("message")
      string(cause.message)
      endObject()
    }
    if let point {
      key("resumeToken")
      point.token.withUnsafeBytes { base64($0) }
      key("readTime")
      timestamp(point.readTime)
    }
    endObject()
  }

  /// Appends the member `documentChange`; `write` appends its document.
  fileprivate mutating func documentChange(
    _ name: StaticString, _ id: Int32, _ write: (inout JSONWriter) throws -> Void
  ) rethrows {
    key("documentChange")
    beginObject()
    key("document")
    try write(&self)
    target(name, id)
    endObject()
  }

  /// Appends the member for a document that was deleted or no longer matches.
  fileprivate mutating func departure(
    _ name: StaticString, _ document: DocumentKey, _ root: [UInt8], _ time: Timestamp, _ id: Int32
  ) {
    key(name)
    beginObject()
    key("document")
    root.withUnsafeBytes { root in document.path.bytes.withUnsafeBytes { string(root, slash: $0) } }
    key("readTime")
    timestamp(time)
    target("removedTargetIds", id)
    endObject()
  }

  private mutating func target(_ name: StaticString, _ id: Int32) {
    key(name)
    beginArray()
    number(Int(id))
    endArray()
  }
}
