package import DocumentModel

/// A request on a Listen stream, decoded from JSON or protobuf (listen-and-webchannel.md, section 1.1).
package enum DecodedListenRequest: Equatable, Sendable {
  /// A valid request.
  case accepted(ListenRequest)
  /// A request that adds an invalid target. The error ends this target, not the stream.
  case refused(target: Int32, RefusedTarget)
}

/// The reason why a target is rejected.
package enum RefusedTarget: Equatable, Sendable {
  /// The target is malformed.
  case invalid(WireError)
  /// The target follows the results of a pipeline, which this server does not support.
  case pipeline
}

/// The members of a `google.firestore.v1.Target`, decoded from JSON or protobuf.
struct TargetMembers {
  /// The database of the stream.
  let database: DatabaseID
  var target: ListenTarget
  private var hasSelection = false

  init(id: Int32, database: DatabaseID) {
    self.database = database
    target = ListenTarget(id: id, .documents([]))
  }

  mutating func follow(_ query: Query) {
    target.selection = .query(query)
    hasSelection = true
  }

  /// Follows documents, without repeats.
  mutating func follow(_ documents: [ResourcePath]) {
    var seen = Set<ResourcePath>()
    target.selection = .documents(documents.filter { seen.insert($0).inserted })
    hasSelection = !documents.isEmpty
  }

  /// Returns the path of a document in the target.
  /// - Throws: ``WireError/model(_:)`` if the document is in another database.
  func path(_ name: (database: DatabaseID, key: DocumentKey)) throws(WireError) -> ResourcePath {
    try check(name.database)
    return name.key.path
  }

  /// Returns the parent of a query, given its full name.
  /// - Throws: ``WireError/model(_:)`` if the name is invalid or is in another database.
  func parent(_ name: UnsafeRawBufferPointer) throws(WireError) -> ResourcePath {
    let parent: ResourceName
    do throws(ModelError) { parent = try ResourceName.parent(name) } catch { throw .model(error) }
    try check(parent.database)
    return parent.path
  }

  private func check(_ named: DatabaseID) throws(WireError) {
    guard named == database else {
      throw .model(.otherDatabase(requested: database.name, accessed: named.name))
    }
  }

  /// Returns the request that the members describe.
  /// - Throws: ``WireError/model(_:)`` if the members select neither a query nor documents.
  func request() throws(WireError) -> DecodedListenRequest {
    guard hasSelection else { throw .model(.emptyTarget) }
    return .accepted(.add(target))
  }

  /// Returns the refusal for an error inside a target. Rethrows the error, which ends the stream, if the target has
  /// no number.
  static func refusal(_ id: Int32, _ error: WireError) throws(WireError) -> DecodedListenRequest {
    guard id != 0 else { throw error }
    return .refused(target: id, .invalid(error))
  }
}
