import DatabaseService
import DocumentModel
import Transport
import Watch
import WireFormat

/// The events of a Listen stream with one target, each in the JSON form of a `ListenResponse`.
///
/// The resume tokens of CURRENT and of snapshots are the tokens of their events. The feed ends when its target
/// ends.
final class ListenFeed: ChangeFeedProducer {
  private let stream: ListenStream
  private let encoder: StreamJSONEncoder
  private(set) var isAdmitted = false
  private var isEnded = false

  /// Follows a target.
  ///
  /// - Throws: the errors of opening the stream, and `INVALID_ARGUMENT` if the target is not valid.
  init(
    _ service: FirestoreService, _ target: ListenTarget, in database: DatabaseID, as caller: Caller,
    wake: @escaping @Sendable () -> Void
  ) throws {
    stream = try ListenStream(service, in: database, as: caller, wake: wake)
    encoder = StreamJSONEncoder(database)
    do {
      try stream.receive(.add(target))
    } catch {
      stream.end()
      throw error
    }
  }

  func produce(into writer: inout ChangeFeedWriter, bytesMax: Int) throws -> BodyProgress {
    let progress = try stream.pull { event in
      var token: [UInt8]?
      switch event {
      case .add: break
      case .remove(_, let cause):
        if let cause, !isAdmitted { throw cause }
        isEnded = true
      case .current(_, let resumeToken, _), .noChange(let resumeToken, _):
        token = resumeToken
        isAdmitted = true
      default: isAdmitted = true
      }
      try writer.event(token: token) { try encoder.append(event, to: &$0.bytes) }
      return !isEnded && writer.byteCount < bytesMax
    }
    if isEnded { return .finished }
    return progress == .more ? .more : .waiting
  }

  func end() { stream.end() }
}
