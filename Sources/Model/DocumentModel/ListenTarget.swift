/// A request on a Listen stream (`ListenRequest`; listen-and-webchannel.md, section 1.1).
package enum ListenRequest: Hashable, Sendable {
  /// Adds a target to the stream.
  case add(ListenTarget)
  /// Removes the target with this number.
  case remove(Int32)
}

/// The documents that a listener follows (`Target`): the results of a query or pipeline, or documents by name.
package struct ListenTarget: Hashable, Sendable {
  /// The documents of a target.
  package enum Selection: Hashable, Sendable {
    /// The results of a query.
    case query(Query)
    /// The results of a pipeline, as a query of the enterprise edition that finds the same documents. Rules must allow
    /// all results of `provable`.
    case pipeline(Query, provable: Query)
    /// Documents by name, without repeats. They need not exist.
    case documents([ResourcePath])
  }

  /// A state that the client already has. The server sends only the changes after it.
  package enum ResumePoint: Hashable, Sendable {
    /// The state of a resume token that the client received. The token can be of any origin and age.
    case token([UInt8])
    /// The state at a time.
    case readTime(Timestamp)
  }

  /// The client's number for the target, unique on its stream. If it is 0, the server chooses a number.
  package var id: Int32
  package var selection: Selection
  /// The state to resume from, or `nil` to send all documents.
  package var resumePoint: ResumePoint?
  /// The number of documents that the client has at the resume point, or `nil` if the client does not send it.
  package var expectedCount: Int?
  /// Whether the target ends after its first consistent state.
  package var endsWhenCurrent = false

  /// Creates a target that does not end by itself. Without a resume point the server sends all documents.
  package init(id: Int32, _ selection: Selection, resumePoint: ResumePoint? = nil) {
    self.id = id
    self.selection = selection
    self.resumePoint = resumePoint
  }
}

/// A request on a Write stream (`WriteRequest`; listen-and-webchannel.md, section 2).
package struct WriteStreamRequest: Equatable, Sendable {
  /// The ID of the stream to resume; empty for a new stream.
  package var streamID = ""
  /// The latest token that the client received.
  package var streamToken: [UInt8] = []
  /// The writes of a batch, which commit atomically; empty in the first request.
  package var writes: [Write] = []

  /// Creates the first request of a stream.
  package init() {}
}
