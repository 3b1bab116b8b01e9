import DatabaseService
import DocumentModel
import Watch
import WireFormat

/// Encodes the messages of a Listen or Write stream as protobuf.
struct StreamProtobufEncoder {
  private let database: DatabaseID
  private let root: [UInt8]

  init(_ database: DatabaseID) {
    self.database = database
    root = database.documentsRootBytes
  }

  /// Appends the content of a ListenResponse. A document costs a copy of its bytes.
  ///
  /// - Throws: ``WireError`` if a stored document is damaged. Then the appended bytes are incomplete.
  func append(_ event: WatchEvent, to out: inout [UInt8]) throws {
    switch event {
    case .add(let id): Self.targetChange(1, id, to: &out)
    case .remove(let id, let cause):
      Self.targetChange(2, id, cause: cause.map { Status($0, database: database) }, to: &out)
    case .reset(let id): Self.targetChange(4, id, to: &out)
    case .current(let id, let token, let time): Self.targetChange(3, id, at: (token, time), to: &out)
    case .noChange(let token, let time): Self.targetChange(0, nil, at: (token, time), to: &out)
    case .document(let key, .modified(let document), let id, _): try change(key, document, 5, id, to: &out)
    case .document(let key, .removed(let document?), let id, _): try change(key, document, 6, id, to: &out)
    case .document(let key, .deleted, let id, let time):
      ProtobufWriter.message(4, to: &out) { out in
        name(of: key, to: &out)
        ProtobufWriter.timestamp(4, time, to: &out)
        Self.target(6, id, to: &out)
      }
    case .document(let key, .removed(nil), let id, let time):
      ProtobufWriter.message(6, to: &out) { out in
        name(of: key, to: &out)
        Self.target(2, id, to: &out)
        ProtobufWriter.timestamp(4, time, to: &out)
      }
    }
  }

  /// Appends a DocumentChange, with the target in the field of a number.
  private func change(
    _ key: DocumentKey, _ document: DocumentState, _ number: Int, _ id: Int32, to out: inout [UInt8]
  ) throws {
    let start = ProtobufWriter.beginMessage(3, to: &out)
    switch document {
    case .stored(let document):
      let start = ProtobufWriter.beginMessage(1, to: &out)
      try EncodedDocument.with(key, document, root: root) { (encoded) throws(WireError) in
        try DocumentProtobuf.append(encoded, to: &out)
      }
      ProtobufWriter.endMessage(start, in: &out)
    case .shared(let document): ProtobufWriter.bytes(1, try document.encoded(.protobuf, encoded), to: &out)
    }
    Self.target(number, id, to: &out)
    ProtobufWriter.endMessage(start, in: &out)
  }

  /// Appends the content of a WriteResponse.
  func append(_ response: WriteStreamResponse, to out: inout [UInt8]) {
    if !response.streamID.isEmpty { ProtobufWriter.string(1, response.streamID, to: &out) }
    ProtobufWriter.bytes(2, response.streamToken, to: &out)
    for result in response.results {
      ProtobufWriter.message(3, to: &out) { DocumentProtobuf.append(result, to: &$0) }
    }
    if let time = response.commitTime { ProtobufWriter.timestamp(4, time, to: &out) }
  }

  /// The Document message of a change event.
  private func encoded(_ document: WatchedDocument) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try EncodedDocument.with(Document(document), root: root) { (encoded) throws(WireError) in
      try DocumentProtobuf.append(encoded, to: &bytes)
    }
    return bytes
  }

  private func name(of key: DocumentKey, to out: inout [UInt8]) {
    ProtobufWriter.bytes(1, root + [UInt8(ascii: "/")] + key.path.bytes, to: &out)
  }

  /// Appends a TargetChange. The type NO_CHANGE (0) is omitted.
  private static func targetChange(
    _ type: Int64, _ id: Int32?, cause: Status? = nil, at point: (token: [UInt8], readTime: Timestamp)? = nil,
    to out: inout [UInt8]
  ) {
    ProtobufWriter.message(2, to: &out) { out in
      if type != 0 { ProtobufWriter.int64(1, type, to: &out) }
      if let id { target(2, id, to: &out) }
      if let cause {
        ProtobufWriter.message(3, to: &out) { out in
          DocumentProtobuf.append(code: cause.code.rawValue, message: cause.message, to: &out)
        }
      }
      if let point {
        ProtobufWriter.bytes(4, point.token, to: &out)
        ProtobufWriter.timestamp(6, point.readTime, to: &out)
      }
    }
  }

  /// Appends a packed list of one target ID. On the wire an int32 is extended to 64 bits.
  private static func target(_ number: Int, _ id: Int32, to out: inout [UInt8]) {
    ProtobufWriter.message(number, to: &out) { ProtobufWriter.varint(UInt64(bitPattern: Int64(id)), to: &$0) }
  }
}
