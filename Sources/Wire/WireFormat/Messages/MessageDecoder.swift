package import DocumentModel

/// A decoder of the API's messages from one encoding.
package protocol MessageDecoder: AnyObject {
  /// A message in the encoding.
  associatedtype Encoded
  /// Decodes a message. `message` contains what is known before its first field.
  ///
  /// - Throws: ``WireError`` with the documented text if the encoding is malformed or the message invalid.
  func decode<M: DecodableMessage>(_ encoded: Encoded, _ message: M) throws(WireError) -> M.Decoded
  /// The database of the request, to which its documents must belong. `nil` outside requests.
  var database: DatabaseID? { get set }
}

extension MessageDecoder {
  /// Decodes a `google.firestore.v1.Write`.
  /// - Throws: ``WireError`` with the documented text if the message is malformed or violates a rule for writes.
  package func write(_ message: Encoded) throws(WireError) -> AddressedWrite { try decode(message, WriteMembers()) }

  /// Decodes a `google.firestore.v1.StructuredQuery` below a parent.
  /// - Throws: ``WireError`` with the documented text if the message is malformed.
  package func query(_ message: Encoded, below parent: ResourcePath) throws(WireError) -> Query {
    try decode(message, QueryMembers(below: parent))
  }

  /// Decodes a `google.firestore.v1.ListenRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the stream must end. An error in the target alone is returned as
  ///   ``DecodedListenRequest/refused(target:_:)``.
  package func listenRequest(_ message: Encoded, in database: DatabaseID) throws(WireError) -> DecodedListenRequest {
    self.database = database
    return try decode(message, ListenRequestMembers())
  }

  /// Decodes a `google.firestore.v1.WriteRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the request is malformed or a document is in another database.
  package func writeStreamRequest(_ message: Encoded, in database: DatabaseID) throws(WireError) -> WriteStreamRequest {
    self.database = database
    return try decode(message, WriteStreamRequest())
  }
}

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.Document`. Its times are ignored, as in the service.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package func document(_ value: JSONValue) throws(WireError) -> DecodedDocument {
    var document = DecodedDocument(name: [], fields: .none)
    var members = try members(of: value, "google.firestore.v1.Document")
    while let (name, content) = members.next() {
      switch name {
      case "name": document.name = [UInt8](try string(content, "name"))
      case "fields":
        path.enter("fields")
        document.fields = try fields(content)
        path.leave()
      case "createTime", "create_time", "updateTime", "update_time": break
      default: throw unknown(name)
      }
    }
    return document
  }

  /// Parses the full name of a document. Cost: low if the name has the same database as the previous one.
  /// - Throws: ``WireError/model(_:)`` with the documented text if the name is invalid.
  package func documentName(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    try names.parse(name)
  }

  /// Decodes the writes of a commit after their list was entered.
  /// - Throws: ``WireError`` with the documented text if a write is malformed or violates a rule for writes.
  package func writes(_ value: JSONValue) throws(WireError) -> [AddressedWrite] {
    var elements = try elements(of: value)
    var writes: [AddressedWrite] = []
    while let element = elements.next() {
      path.element(writes.count)
      writes.append(try write(element))
    }
    return writes
  }
}
