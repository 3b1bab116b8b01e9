package import DocumentModel

// The requests of the Listen and Write streams.
extension JSONMessageDecoder {
  /// Decodes the database that a request on a stream names, or returns `nil` if it names none. Call this function
  /// first: the edition of the database determines how to decode the rest.
  /// - Throws: ``WireError`` if the name is invalid.
  package func streamDatabase(_ value: JSONValue) throws(WireError) -> DatabaseID? {
    var database: DatabaseID?
    var members = try members(of: value, "google.firestore.v1.ListenRequest")
    while let (name, content) = members.next() {
      guard "database" ~= name else { continue }
      let text = try string(content, "database")
      if text.isEmpty { continue }
      do throws(ModelError) { database = try ResourceName.database(text) } catch { throw .model(error) }
    }
    return database
  }

  /// Decodes a `google.firestore.v1.ListenRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the stream must end. An error in the target alone is returned as
  ///   ``DecodedListenRequest/refused(target:_:)``.
  package func listenRequest(_ value: JSONValue, in database: DatabaseID) throws(WireError) -> DecodedListenRequest {
    var request: DecodedListenRequest?
    var members = try members(of: value, "google.firestore.v1.ListenRequest")
    while let (name, content) = members.next() {
      switch name {
      case "database", "labels": continue
      case "addTarget", "add_target", "removeTarget", "remove_target":
        guard request == nil else { throw alreadySet("target_change", name) }
      default: throw unknown(name)
      }
      switch name {
      case "addTarget", "add_target":
        enter("add_target")
        request = try target(content, in: database)
        leave()
      default: request = .accepted(.remove(try int32(content, "remove_target")))
      }
    }
    guard let request else { throw .model(.emptyListenRequest) }
    return request
  }

  /// Decodes a `google.firestore.v1.WriteRequest` on a stream to a database.
  /// - Throws: ``WireError`` if the request is malformed or a document is in another database.
  package func writeStreamRequest(
    _ value: JSONValue, in database: DatabaseID
  ) throws(WireError) -> WriteStreamRequest {
    var request = WriteStreamRequest()
    var members = try members(of: value, "google.firestore.v1.WriteRequest")
    while let (name, content) = members.next() {
      switch name {
      case "database", "labels": break
      case "streamId", "stream_id":
        request.streamID = String(decoding: try string(content, "stream_id"), as: UTF8.self)
      case "streamToken", "stream_token": request.streamToken = try bytes(content, "stream_token")
      case "writes":
        enter("writes")
        request.writes = try writes(content).inside(database)
        leave()
      default: throw unknown(name)
      }
    }
    return request
  }

  // MARK: Targets

  /// Decodes a `google.firestore.v1.Target` after its field was entered.
  private func target(_ value: JSONValue, in database: DatabaseID) throws(WireError) -> DecodedListenRequest {
    // Find the target's number first, wherever it is: an error in the rest needs it.
    var id: Int32 = 0
    var isPipeline = false
    var scan = try members(of: value, "google.firestore.v1.Target")
    while let (name, content) = scan.next() {
      switch name {
      case "targetId", "target_id": id = try int32(content, "target_id")
      case "pipelineQuery", "pipeline_query": isPipeline = true
      default: break
      }
    }
    if isPipeline, id != 0 { return .refused(target: id, .pipeline) }
    do throws(WireError) {
      return try target(value, TargetMembers(id: id, database: database))
    } catch {
      return try TargetMembers.refusal(id, error)
    }
  }

  private func target(_ value: JSONValue, _ empty: TargetMembers) throws(WireError) -> DecodedListenRequest {
    var target = empty
    var isSelected = false
    var members = try members(of: value, "google.firestore.v1.Target")
    while let (name, content) = members.next() {
      switch name {
      case "query", "documents":
        guard !isSelected else { throw alreadySet("target_type", name) }
        isSelected = true
      case "resumeToken", "resume_token", "readTime", "read_time":
        guard target.target.resumePoint == nil else { throw alreadySet("resume_type", name) }
      default: break
      }
      switch name {
      case "query":
        enter("query")
        target.follow(try queryTarget(content, target))
        leave()
      case "documents":
        enter("documents")
        target.follow(try documentsTarget(content, target))
        leave()
      case "resumeToken", "resume_token":
        let token = try bytes(content, "resume_token")
        if !token.isEmpty { target.target.resumePoint = .token(token) }
      case "readTime", "read_time": target.target.resumePoint = .readTime(try alignedTimestamp(content, "read_time"))
      case "expectedCount", "expected_count":
        target.target.expectedCount = Int(try int32Value(content, "expected_count"))
      case "once": target.target.endsWhenCurrent = try bool(content, "once")
      case "targetId", "target_id": break
      default: throw unknown(name)
      }
    }
    return try target.request()
  }

  private func queryTarget(_ value: JSONValue, _ target: TargetMembers) throws(WireError) -> Query {
    // An unset name is the empty name, which is rejected.
    var parent = UnsafeRawBufferPointer(start: nil, count: 0)
    var query: Query?
    var members = try members(of: value, "google.firestore.v1.Target.QueryTarget")
    while let (name, content) = members.next() {
      switch name {
      case "parent": parent = try string(content, "parent")
      case "structuredQuery", "structured_query":
        enter("structured_query")
        query = try self.query(content, below: .root)
        leave()
      default: throw unknown(name)
      }
    }
    guard var query else { throw .model(.emptyTarget) }
    query.parent = try target.parent(parent)
    return query
  }

  private func documentsTarget(_ value: JSONValue, _ target: TargetMembers) throws(WireError) -> [ResourcePath] {
    var documents: [ResourcePath] = []
    var members = try members(of: value, "google.firestore.v1.Target.DocumentsTarget")
    while let (name, content) = members.next() {
      guard "documents" ~= name else { throw unknown(name) }
      enter("documents")
      var elements = try elements(of: content)
      while let item = elements.next() {
        element(documents.count)
        documents.append(try target.path(try documentName(try string(item, ""))))
      }
      leave()
    }
    return documents
  }
}

extension [AddressedWrite] {
  /// Returns the writes without their databases.
  /// - Throws: ``WireError/model(_:)`` if a write is in another database than `database`.
  func inside(_ database: DatabaseID) throws(WireError) -> [Write] {
    var writes: [Write] = []
    writes.reserveCapacity(count)
    for addressed in self {
      guard addressed.database == database else {
        throw .model(.otherDatabase(requested: database.name, accessed: addressed.database.name))
      }
      writes.append(addressed.write)
    }
    return writes
  }
}
