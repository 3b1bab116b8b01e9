import DocumentModel

/// The entry points for fuzzing. They must not trap on any bytes, and check properties of the bytes that they
/// accept.
package enum WireFuzz {
  /// Decodes bytes as a Document message from a client, and as stored fields.
  package static func protobuf(_ bytes: UnsafeRawBufferPointer) {
    if let fields = try? EncodedFields.canonical(fromClient: bytes) {
      let again = fields.bytes.withUnsafeBytes { try? EncodedFields.canonical(fromClient: $0) }
      precondition(again == fields, "canonical fields are a fixed point")
      precondition((try? fields.decoded()).map { EncodedFields($0) } == fields, "canonical fields survive decoding")
    }
    let stored = EncodedFields(canonical: [UInt8](bytes))
    _ = try? stored.decoded()
    if let key = DocumentKey(ResourcePath(uncheckedBytes: Array("c/d".utf8))) {
      _ = try? DocumentSize.bytes(key: key, fields: stored)
    }
    _ = try? stored.withMap { (map) throws(WireError) in try map.value(at: FieldPath(segments: ["a", "b"])) }
  }

  /// Decodes bytes as JSON: as the fields of a document, as the writes of a commit, and as a request on a stream.
  package static func json(_ bytes: UnsafeRawBufferPointer) {
    let document = JSONDocument(bytesMax: 1 << 20)
    let decoder = JSONMessageDecoder()
    let fields = try? document.withParsed(bytes) { (root) throws(WireError) in try decoder.fields(root) }
    if let fields {
      let text = try? fields.withMap { (map) throws(WireError) in
        var writer = JSONWriter(.compact)
        try DocumentJSON.append(fields: map, to: &writer)
        return writer.bytes
      }
      precondition(text != nil, "accepted fields can be written")
      let again = text?.withUnsafeBytes { buffer in
        try? document.withParsed(buffer) { (root) throws(WireError) in try decoder.fields(root) }
      }
      precondition(again == fields, "JSON of canonical fields reads back the same")
    }
    decoder.reset()
    _ = try? document.withParsed(bytes) { (root) throws(WireError) in
      decoder.enter("writes")
      return try decoder.writes(root)
    }
    decoder.reset(in: DatabaseID(project: "p"))
    _ = try? document.withParsed(bytes) { (root) throws(WireError) in
      requests(root, decoder)
      return try decoder.streamDatabase(root)
    }
  }

  /// Decodes a message as each request, and as each message that is part of one.
  private static func requests<Decoder: MessageDecoder>(_ message: Decoder.Encoded, _ decoder: Decoder) {
    _ = try? decoder.write(message)
    _ = try? decoder.query(message, below: .root)
    _ = try? decoder.decode(message, ListDocumentsRequest(allBelow: .root))
    _ = try? decoder.decode(message, CreateDocumentRequest(in: .root))
    if let key = DocumentKey(ResourcePath(uncheckedBytes: Array("c/d".utf8))) {
      _ = try? decoder.decode(message, GetDocumentRequest(key))
      _ = try? decoder.decode(message, UpdateDocumentRequest(key))
      _ = try? decoder.decode(message, DeleteDocumentRequest(key))
    }
    _ = try? decoder.decode(message, BatchGetDocumentsRequest())
    _ = try? decoder.decode(message, BeginTransactionRequest())
    _ = try? decoder.decode(message, CommitMessage())
    _ = try? decoder.decode(message, RollbackRequest())
    _ = try? decoder.decode(message, BatchWriteRequest())
    _ = try? decoder.decode(message, RunQueryRequest(below: .root))
    _ = try? decoder.decode(message, RunAggregationQueryRequest(below: .root))
    _ = try? decoder.decode(message, PartitionQueryRequest(below: .root))
    _ = try? decoder.decode(message, ListCollectionIdsRequest(below: .root))
    _ = try? decoder.decode(message, ExecutePipelineRequest())
    if let database = decoder.database {
      _ = try? decoder.listenRequest(message, in: database)
      _ = try? decoder.writeStreamRequest(message, in: database)
    }
  }

  /// Decodes bytes as each message that is part of a request, for databases of both editions.
  package static func messages(_ bytes: UnsafeRawBufferPointer) {
    let decoder = ProtobufMessageDecoder()
    for edition in [Edition.standard, .enterprise] {
      decoder.reset(edition, in: DatabaseID(project: "p"))
      requests(bytes, decoder)
      _ = try? ProtobufMessageDecoder.streamDatabase(bytes)
      guard let fields = try? decoder.document(bytes).fields else { continue }
      var encoder = CanonicalEncoder(.stored, edition)
      let again: Void? = fields.bytes.withUnsafeBytes { try? encoder.appendFields(fromClient: $0) }
      precondition(again != nil && encoder.bytes == fields.bytes, "canonical fields are a fixed point")
    }
  }

  /// Parses bytes as a field path, a resource name and a timestamp.
  package static func path(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let path = try? FieldPath(text) {
      precondition((try? FieldPath(path.text)) == path, "the text of a field path parses to the same path")
    }
    if let (database, key) = try? ResourceName.document(bytes) {
      let name = database.documentsRoot.utf8.count + 1 + key.path.bytes.count
      precondition(name == bytes.count, "a document name is its root and its path")
    }
    if let moment = Timestamp(rfc3339: bytes) {
      precondition(
        Timestamp(rfc3339: moment.description.utf8) == moment, "a timestamp's text parses to the same moment")
    }
  }
}
