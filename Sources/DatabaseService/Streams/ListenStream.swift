package import DocumentModel

/// One Listen stream: the targets of a client, and what it is yet to be told (listen-and-webchannel.md, section 1).
///
/// Belongs to the loop's thread of its client. Requests go in; events are pulled out, only as fast as the client takes
/// them. What waits in between is bounded: a client that lags is brought up to date from the change log.
package final class ListenStream {
  /// How a pull ended.
  package enum Progress {
    /// `emit` wanted no more, or others are to get their turn: pull again.
    case more
    /// There is nothing to tell now: `wake` will be called when there is.
    case waiting
  }

  /// Opens a stream to a database. `wake` is called, on any thread, once there is something to pull after
  /// ``Progress/waiting``; the stream may have ended meanwhile.
  /// - Throws: as ``Service/access(to:as:)``.
  package init(_ service: Service, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void) throws {
    throw Status(.unimplemented, "This version of hearth does not serve the streams Listen and Write yet.")
  }

  /// Takes a request. What is wrong with one target ends that target only, by an event.
  /// - Throws: `INVALID_ARGUMENT` for what ends the stream.
  package func receive(_ request: ListenRequest) throws {}

  /// Calls `emit` for each event until it returns `false`. What an event borrows is valid during the call.
  /// - Throws: what `emit` throws, and ``Status`` where the stream as a whole cannot go on.
  package func pull(_ emit: (ListenEvent) throws -> Bool) throws -> Progress { .waiting }

  /// Ends the stream; nothing is told any more, and `wake` is let go.
  package func end() {}
}
