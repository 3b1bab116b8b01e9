package import DocumentModel

/// A request on a Listen stream as it was read from either wire (listen-and-webchannel.md, section 1.1).
package enum DecodedListenRequest: Equatable, Sendable {
  /// It can be handed on.
  case accepted(ListenRequest)
  /// It adds a target that cannot be followed. That ends this target, not the stream.
  case refused(target: Int32, RefusedTarget)
}

/// Why a target cannot be followed.
package enum RefusedTarget: Equatable, Sendable {
  /// Something about it is wrong.
  case invalid(WireError)
  /// It follows the results of a pipeline, which is not served.
  case pipeline
}

/// The members of a `google.firestore.v1.Target` as they were read from either wire.
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

  /// Follows documents, each once.
  mutating func follow(_ documents: [ResourcePath]) {
    var seen = Set<ResourcePath>()
    target.selection = .documents(documents.filter { seen.insert($0).inserted })
    hasSelection = !documents.isEmpty
  }

  /// The path of a document that the target names.
  /// - Throws: ``WireError/model(_:)`` where it lies in another database.
  func path(_ name: (database: DatabaseID, key: DocumentKey)) throws(WireError) -> ResourcePath {
    try check(name.database)
    return name.key.path
  }

  /// The parent of a query.
  /// - Throws: ``WireError/model(_:)`` where it is none, or lies in another database.
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

  /// The target that the members make.
  /// - Throws: ``WireError/model(_:)`` where they say nothing to follow.
  func request() throws(WireError) -> DecodedListenRequest {
    guard hasSelection else { throw .model(.emptyTarget) }
    return .accepted(.add(target))
  }

  /// What an error inside a target means: its end; or the stream's, where the target has no number to be ended by.
  static func refusal(_ id: Int32, _ error: WireError) throws(WireError) -> DecodedListenRequest {
    guard id != 0 else { throw error }
    return .refused(target: id, .invalid(error))
  }
}
