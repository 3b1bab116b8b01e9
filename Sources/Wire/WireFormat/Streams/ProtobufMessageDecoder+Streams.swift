package import DocumentModel

// The requests of the Listen and Write streams.
extension ProtobufMessageDecoder {
  /// Decodes the database that a request on a stream names, or returns `nil` if it names none. Call this function
  /// first: the edition of the database determines how to decode the rest.
  /// - Throws: ``WireError`` if the name is invalid.
  package static func streamDatabase(_ message: UnsafeRawBufferPointer) throws(WireError) -> DatabaseID? {
    var database: DatabaseID?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      guard field.number == 1, field.wireType == .lengthDelimited, !field.bytes.isEmpty else { continue }
      let name = try text(field)
      do throws(ModelError) { database = try ResourceName.database(name) } catch { throw .model(error) }
    }
    return database
  }

  /// Decodes a `google.firestore.v1.ListenRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the stream must end. An error in the target alone is returned as
  ///   ``DecodedListenRequest/refused(target:_:)``.
  package func listenRequest(
    _ message: UnsafeRawBufferPointer, in database: DatabaseID
  ) throws(WireError) -> DecodedListenRequest {
    var request: DecodedListenRequest?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (2, .lengthDelimited): request = try target(field.bytes, in: database)
      case (3, .varint): request = .accepted(.remove(field.int32))
      default: break
      }
    }
    guard let request else { throw .model(.emptyListenRequest) }
    return request
  }

  /// Decodes a `google.firestore.v1.WriteRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the request is malformed or a document is in another database.
  package func writeStreamRequest(
    _ message: UnsafeRawBufferPointer, in database: DatabaseID
  ) throws(WireError) -> WriteStreamRequest {
    var request = WriteStreamRequest()
    var writes: [AddressedWrite] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (2, .lengthDelimited): request.streamID = try Self.string(field)
      case (3, .lengthDelimited): writes.append(try write(field.bytes))
      case (4, .lengthDelimited): request.streamToken = [UInt8](field.bytes)
      default: break
      }
    }
    request.writes = try writes.inside(database)
    return request
  }

  // MARK: Targets

  /// Decodes a `google.firestore.v1.Target`.
  private func target(
    _ message: UnsafeRawBufferPointer, in database: DatabaseID
  ) throws(WireError) -> DecodedListenRequest {
    // Find the target's number first, wherever it is: an error in the rest needs it.
    var id: Int32 = 0
    var isPipeline = false
    var scan = ProtobufReader(message)
    while let field = try scan.next() {
      switch (field.number, field.wireType) {
      case (5, .varint): id = field.int32
      case (13, .lengthDelimited): isPipeline = true
      case (2, .lengthDelimited), (3, .lengthDelimited): isPipeline = false
      default: break
      }
    }
    if isPipeline, id != 0 { return .refused(target: id, .pipeline) }
    do throws(WireError) {
      return try target(message, TargetMembers(id: id, database: database))
    } catch {
      return try TargetMembers.refusal(id, error)
    }
  }

  private func target(
    _ message: UnsafeRawBufferPointer, _ empty: TargetMembers
  ) throws(WireError) -> DecodedListenRequest {
    var target = empty
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (2, .lengthDelimited): target.follow(try queryTarget(field.bytes, target))
      case (3, .lengthDelimited): target.follow(try documentsTarget(field.bytes, target))
      case (4, .lengthDelimited):
        target.target.resumePoint = field.bytes.isEmpty ? nil : .token([UInt8](field.bytes))
      case (6, .varint): target.target.endsWhenCurrent = field.bool
      case (11, .lengthDelimited): target.target.resumePoint = .readTime(try Self.alignedTimestamp(field.bytes))
      case (12, .lengthDelimited): target.target.expectedCount = Int(try Self.int32Value(field.bytes))
      default: break
      }
    }
    return try target.request()
  }

  private func queryTarget(_ message: UnsafeRawBufferPointer, _ target: TargetMembers) throws(WireError) -> Query {
    var parent = UnsafeRawBufferPointer(start: nil, count: 0)
    var query: Query?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): parent = try Self.text(field)
      case (2, .lengthDelimited): query = try self.query(field.bytes, below: .root)
      default: break
      }
    }
    guard var query else { throw .model(.emptyTarget) }
    query.parent = try target.parent(parent)
    return query
  }

  private func documentsTarget(
    _ message: UnsafeRawBufferPointer, _ target: TargetMembers
  ) throws(WireError) -> [ResourcePath] {
    var documents: [ResourcePath] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      guard field.number == 2, field.wireType == .lengthDelimited else { continue }
      documents.append(try target.path(try documentName(try Self.text(field))))
    }
    return documents
  }
}
