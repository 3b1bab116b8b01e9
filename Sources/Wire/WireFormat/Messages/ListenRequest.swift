package import DocumentModel

/// A request on a Listen stream, decoded from JSON or protobuf (listen-and-webchannel.md, section 1.1).
package enum DecodedListenRequest: Equatable, Sendable {
  /// A valid request.
  case accepted(ListenRequest)
  /// A request that adds a target that follows the results of a pipeline. The selection of the target is empty until
  /// the pipeline has been checked.
  case pipeline(ListenTarget, StructuredPipeline)
  /// A request that adds a malformed target. The error ends this target, not the stream.
  case refused(target: Int32, WireError)
}

// The database of the first request of a stream, which determines how the rest is decoded.
extension JSONMessageDecoder {
  /// Decodes the database that a request on a stream names, or returns `nil` if it names none.
  /// - Throws: ``WireError`` if the name is invalid.
  package func streamDatabase(_ value: JSONValue) throws(WireError) -> DatabaseID? {
    try decode(value, StreamDatabase())
  }

  private struct StreamDatabase: DecodableMessage {
    static let typeName = ListenRequestMembers.typeName
    private var database: DatabaseID?

    mutating func decode(_ field: inout some MessageField) throws(WireError) {
      guard field.matches(1, "database") else { return field.ignoreAll() }
      database = try ProtobufMessageDecoder.database(try field.text()) ?? database
    }

    func decoded() throws(WireError) -> DatabaseID? { database }
  }
}

extension ProtobufMessageDecoder {
  /// Decodes the database that a request on a stream names, or returns `nil` if it names none.
  /// - Throws: ``WireError`` if the name is invalid.
  package static func streamDatabase(_ message: UnsafeRawBufferPointer) throws(WireError) -> DatabaseID? {
    try database(try text(1, of: message))
  }

  fileprivate static func database(_ name: UnsafeRawBufferPointer) throws(WireError) -> DatabaseID? {
    guard !name.isEmpty else { return nil }
    do throws(ModelError) { return try ResourceName.database(name) } catch { throw .model(error) }
  }
}

/// The members of a `google.firestore.v1.ListenRequest`.
struct ListenRequestMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.ListenRequest"
  private var request: DecodedListenRequest?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "add_target") {
      try field.claim("target_change", isSet: request != nil)
      request = try Self.target(field)
    } else if field.matches(3, "remove_target", .varint) {
      try field.claim("target_change", isSet: request != nil)
      request = .accepted(.remove(try field.int32()))
    } else {
      field.ignore("database")
      field.ignore("labels")
    }
  }

  func decoded() throws(WireError) -> DecodedListenRequest {
    guard let request else { throw .model(.emptyListenRequest) }
    return request
  }

  private static func target(_ field: some MessageField) throws(WireError) -> DecodedListenRequest {
    // Find the target's number first, wherever it is: an error in the rest needs it.
    let head = try field.message(TargetHead())
    do throws(WireError) {
      let (target, pipeline) = try field.message(TargetMembers(id: head.id))
      return pipeline.map { .pipeline(target, $0) } ?? .accepted(.add(target))
    } catch {
      // Without a number, the error ends the stream.
      guard head.id != 0 else { throw error }
      return .refused(target: head.id, error)
    }
  }
}

/// The number of a `google.firestore.v1.Target`.
private struct TargetHead: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Target"
  private(set) var id: Int32 = 0

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(5, "target_id", .varint) {
      id = try field.int32()
    } else {
      field.ignoreAll()
    }
  }
}

/// The members of a `google.firestore.v1.Target`.
private struct TargetMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Target"
  private var target: ListenTarget
  private var pipeline: StructuredPipeline?
  private var isSelected = false
  private var hasSelection = false

  init(id: Int32) { target = ListenTarget(id: id, .documents([])) }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "query") {
      try field.claim("target_type", isSet: isSelected)
      isSelected = true
      target.selection = .query(try field.message(QueryTarget(database: field.database)))
      // In protobuf the last member of a oneof is used.
      pipeline = nil
      hasSelection = true
    } else if field.matches(13, "pipeline_query") {
      try field.claim("target_type", isSet: isSelected)
      isSelected = true
      pipeline = try field.message(PipelineQueryTarget())
      hasSelection = true
    } else if field.matches(3, "documents") {
      try field.claim("target_type", isSet: isSelected)
      isSelected = true
      var seen = Set<ResourcePath>()
      let documents = try field.message(DocumentsTarget())
      target.selection = .documents(documents.map(\.path).filter { seen.insert($0).inserted })
      pipeline = nil
      hasSelection = !documents.isEmpty
    } else if field.matches(4, "resume_token") {
      try field.claim("resume_type", isSet: target.resumePoint != nil)
      let token = try field.bytes()
      target.resumePoint = token.isEmpty ? nil : .token(token)
    } else if field.matches(5, "target_id", .varint) {
      // Decoded before.
    } else if field.matches(6, "once", .varint) {
      target.endsWhenCurrent = try field.bool()
    } else if field.matches(11, "read_time") {
      try field.claim("resume_type", isSet: target.resumePoint != nil)
      // Named queries of bundles have nanoseconds. The service accepts them, unlike in the read times of other requests.
      // The truncated time is never later, so the client misses no change.
      target.resumePoint = .readTime(try field.timestamp())
    } else if field.matches(12, "expected_count") {
      target.expectedCount = Int(try field.int32Value())
    }
  }

  func decoded() throws(WireError) -> (ListenTarget, StructuredPipeline?) {
    guard hasSelection else { throw .model(.emptyTarget) }
    return (target, pipeline)
  }
}

/// The members of a `google.firestore.v1.Target.PipelineQueryTarget`.
private struct PipelineQueryTarget: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Target.PipelineQueryTarget"
  private var pipeline: StructuredPipeline?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "structured_pipeline") { pipeline = try field.message(StructuredPipelineMembers()) }
  }

  func decoded() throws(WireError) -> StructuredPipeline {
    guard let pipeline else { throw .model(.pipelineNotStructured) }
    return pipeline
  }
}

/// The members of a `google.firestore.v1.Target.QueryTarget`.
private struct QueryTarget: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Target.QueryTarget"
  /// The database of the stream.
  private let database: DatabaseID?
  /// An unset name is the empty name, which is rejected.
  private var parent = UnsafeRawBufferPointer(start: nil, count: 0)
  private var query: Query?

  init(database: DatabaseID?) { self.database = database }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "parent") {
      parent = try field.text()
    } else if field.matches(2, "structured_query") {
      query = try field.message(QueryMembers(below: .root))
    }
  }

  func decoded() throws(WireError) -> Query {
    guard var query else { throw .model(.emptyTarget) }
    let name: ResourceName
    do throws(ModelError) { name = try ResourceName.parent(parent) } catch { throw .model(error) }
    if let mismatch = database.mismatch(name.database) { throw mismatch }
    query.parent = name.path
    return query
  }
}

/// The members of a `google.firestore.v1.Target.DocumentsTarget`.
private struct DocumentsTarget: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Target.DocumentsTarget"
  private var documents: [DocumentKey] = []

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "documents") { try field.append(to: &documents) }
  }

  func decoded() throws(WireError) -> [DocumentKey] { documents }
}
