/// A request on a Listen stream (`ListenRequest`; listen-and-webchannel.md, section 1.1).
package enum ListenRequest: Hashable, Sendable {
  /// Follow a target from now on.
  case add(ListenTarget)
  /// Follow the target of that number no longer.
  case remove(Int32)
}

/// What a listener follows (`Target`): the results of a query, or documents by name.
package struct ListenTarget: Hashable, Sendable {
  /// What it consists of.
  package enum Selection: Hashable, Sendable {
    /// The results of a query.
    case query(Query)
    /// Documents, each once; they need not exist.
    case documents([ResourcePath])
  }

  /// A state the client has already.
  package enum ResumePoint: Hashable, Sendable {
    /// That of a token it was given, of any origin and age.
    case token([UInt8])
    /// That of a moment.
    case readTime(Timestamp)
  }

  /// The client's number for it, unique on its stream; 0 where the server is to choose.
  package var id: Int32
  /// What is followed.
  package var selection: Selection
  /// From where on; `nil` for everything.
  package var resumePoint: ResumePoint?
  /// How many documents the client has at the resume point, where it says so.
  package var expectedCount: Int?
  /// Whether it ends with its first consistent state.
  package var endsWhenCurrent = false

  /// A target from its first state on.
  package init(id: Int32, _ selection: Selection, resumePoint: ResumePoint? = nil) {
    self.id = id
    self.selection = selection
    self.resumePoint = resumePoint
  }
}

/// A request on a Write stream (`WriteRequest`; listen-and-webchannel.md, section 2).
package struct WriteStreamRequest: Equatable, Sendable {
  /// The stream it resumes; empty for a new one.
  package var streamID = ""
  /// The token that came last.
  package var streamToken: [UInt8] = []
  /// A batch, applied as one; empty in the first request.
  package var writes: [Write] = []

  /// The first request of a stream.
  package init() {}
}
