import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

/// The changes of a whole database, one event per commit. `before` and `after` are documents; a missing document is
/// omitted.
///
/// ```
/// {"commitTime", "changes": [{"name", "before", "after"}], "resumeToken"}
/// {"readTime", "resumeToken"}
/// ```
///
/// The second form says that the feed has sent all changes up to that time.
///
/// A commit is written change by change, so a large commit needs little memory. If the connection breaks during a
/// commit, the client receives no complete event.
final class ChangesFeed: ChangeFeedProducer {
  private let stream: ChangesStream
  private let database: DatabaseID
  private let root: [UInt8]
  /// Whether the event of the current commit has begun.
  private var isInCommit = false
  /// Always `true`: opening the stream authorizes the caller.
  let isAdmitted = true

  /// Follows a database after the commit that `token` denotes, or else after a time, or else from now on.
  ///
  /// - Throws: the errors of opening the stream.
  init(
    _ service: FirestoreService, _ database: DatabaseID, as caller: Caller, since token: [UInt8]?,
    readTime: Timestamp?, wake: @escaping @Sendable () -> Void
  ) throws {
    stream = try ChangesStream(service, in: database, as: caller, since: token, readTime: readTime, wake: wake)
    self.database = database
    root = database.documentsRootBytes
  }

  func produce(into writer: inout ChangeFeedWriter, bytesMax: Int) throws -> BodyProgress {
    do {
      let progress = try stream.pull { event in
        try append(event, to: &writer)
        return writer.byteCount < bytesMax
      }
      return progress == .more ? .more : .waiting
    } catch {
      guard isInCommit else { throw error }
      fail(Status(error, database: database), &writer)
      return .finished
    }
  }

  func end() { stream.end() }

  private func append(_ event: ChangesEvent, to writer: inout ChangeFeedWriter) throws {
    switch event {
    case .change(let key, let version, let before, let after):
      if !isInCommit { beginCommit(version, &writer) }
      try writer.piece { json in
        json.beginObject()
        json.key("name")
        json.name(key, in: database)
        if let before {
          json.key("before")
          try json.append(key, before, root: root, mask: nil)
        }
        if let after {
          json.key("after")
          try json.append(key, after, root: root, mask: nil)
        }
        json.endObject()
      }
    case .commit(let token, let version):
      if !isInCommit { beginCommit(version, &writer) }
      isInCommit = false
      writer.piece { json in
        json.endArray()
        json.key("resumeToken")
        token.withUnsafeBytes { json.base64($0) }
        json.endObject()
      }
      writer.endEvent(token: token)
    case .caughtUp(let token, let version):
      writer.event(token: token) { json in
        json.beginObject()
        json.key("readTime")
        json.timestamp(version)
        json.key("resumeToken")
        token.withUnsafeBytes { json.base64($0) }
        json.endObject()
      }
    }
  }

  private func beginCommit(_ version: Timestamp, _ writer: inout ChangeFeedWriter) {
    isInCommit = true
    writer.beginEvent()
    writer.piece { json in
      json.beginObject()
      json.key("commitTime")
      json.timestamp(version)
      json.key("changes")
      json.beginArray()
    }
  }

  /// Ends the event of a commit that cannot be completed, with an error instead of a token.
  private func fail(_ status: Status, _ writer: inout ChangeFeedWriter) {
    isInCommit = false
    writer.piece { json in
      json.endArray()
      json.key("error")
      ErrorJSON.appendDetails(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
      json.endObject()
    }
    writer.endEvent(token: nil)
  }
}
