import DatabaseService
import DocumentModel
import Watch
import WireFormat

/// Encodes the messages of a Listen or Write stream as protobuf.
struct StreamProtobufEncoder {
  private let root: [UInt8]

  init(_ database: DatabaseID) { root = database.documentsRootBytes }

  /// Appends the content of a ListenResponse. A document costs a copy of its bytes.
  ///
  /// - Throws: ``WireError`` if a stored document is damaged. Then the appended bytes are incomplete.
  func append(_ event: ListenEvent, to out: inout [UInt8]) throws {
    switch event {
    case .targetAdded(let id): Self.targetChange(1, id, to: &out)
    case .targetRemoved(let id, let cause): Self.targetChange(2, id, cause: cause, to: &out)
    case .targetReset(let id): Self.targetChange(4, id, to: &out)
    case .targetCurrent(let id, let token, let time): Self.targetChange(3, id, at: (token, time), to: &out)
    case .snapshot(let token, let time): Self.targetChange(0, nil, at: (token, time), to: &out)
    case .found(let key, let document, let targets):
      try Self.documentChange(targets, [], to: &out) { (out) throws(WireError) in
        let start = ProtobufWriter.beginMessage(1, to: &out)
        try EncodedDocument.with(key, document, root: root) { (encoded) throws(WireError) in
          try DocumentProtobuf.append(encoded, to: &out)
        }
        ProtobufWriter.endMessage(start, in: &out)
      }
    case .changed(let document, let targets, let removed):
      let message = try document.encoded(.protobuf, encoded)
      Self.documentChange(targets, removed, to: &out) { out in ProtobufWriter.bytes(1, message, to: &out) }
    case .deleted(let key, let time, let removed):
      ProtobufWriter.message(4, to: &out) { out in
        name(of: key, to: &out)
        ProtobufWriter.timestamp(4, time, to: &out)
        Self.targets(6, removed, to: &out)
      }
    case .removed(let key, let time, let removed):
      ProtobufWriter.message(6, to: &out) { out in
        name(of: key, to: &out)
        Self.targets(2, removed, to: &out)
        ProtobufWriter.timestamp(4, time, to: &out)
      }
    }
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
      if let id { targets(2, [id], to: &out) }
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

  /// Appends a DocumentChange; `write` appends its document.
  private static func documentChange<E: Error>(
    _ ids: [Int32], _ removed: [Int32], to out: inout [UInt8], _ write: (inout [UInt8]) throws(E) -> Void
  ) throws(E) {
    let start = ProtobufWriter.beginMessage(3, to: &out)
    try write(&out)
    targets(5, ids, to: &out)
    targets(6, removed, to: &out)
    ProtobufWriter.endMessage(start, in: &out)
  }

  /// Appends a packed list of target IDs. On the wire an int32 is extended to 64 bits.
  private static func targets(_ number: Int, _ ids: [Int32], to out: inout [UInt8]) {
    guard !ids.isEmpty else { return }
    ProtobufWriter.message(number, to: &out) { out in
      for id in ids { ProtobufWriter.varint(UInt64(bitPattern: Int64(id)), to: &out) }
    }
  }
}
