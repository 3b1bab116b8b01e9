import DatabaseService
import DocumentModel
import WireFormat

/// A Listen stream as the dialects drive it: opened by its first request, with the targets that could not even be read
/// told in their place. Belongs to the loop's thread of its client.
final class ListenSession {
  /// Refusals that wait for a client to take them. One that goes on sending what cannot be followed is ended.
  static let refusalsMax = 100

  private let service: FirestoreService
  private let caller: Caller
  private let wake: @Sendable () -> Void
  private var stream: ListenStream?
  private var refusals: [(target: Int32, cause: Status)] = []
  /// Targets that were added and have not become current, nor ended.
  private var unsettled = Set<Int32>()

  /// A stream for a caller; `wake` is called, on any thread, when there is something to pull.
  init(_ service: FirestoreService, as caller: Caller, wake: @escaping @Sendable () -> Void) {
    self.service = service
    self.caller = caller
    self.wake = wake
  }

  /// Whether every target that was added has reached its first consistent state, or ended.
  var isSettled: Bool { unsettled.isEmpty && refusals.isEmpty }

  /// Takes a request; `database` is the stream's, the same for all.
  /// - Throws: what ends the stream.
  func receive(_ request: DecodedListenRequest, in database: DatabaseID) throws {
    switch request {
    case .accepted(let request):
      let stream = try stream ?? ListenStream(service, in: database, as: caller, wake: wake)
      self.stream = stream
      switch request {
      case .add(let target): if target.id != 0 { unsettled.insert(target.id) }
      case .remove(let id): unsettled.remove(id)
      }
      try stream.receive(request)
    case .refused(let target, let reason):
      guard refusals.count < Self.refusalsMax else {
        throw Status(.resourceExhausted, "More than \(Self.refusalsMax) targets were added that cannot be followed.")
      }
      refusals.append((target, Self.cause(reason)))
    }
  }

  /// Calls `emit` for each event until it returns `false`. What an event borrows is valid during the call.
  /// - Throws: what `emit` throws, and ``Status`` where the stream as a whole cannot go on.
  func pull(_ emit: (ListenEvent) throws -> Bool) throws -> ListenStream.Progress {
    while let refusal = refusals.first {
      refusals.removeFirst()
      guard try emit(.targetRemoved(refusal.target, cause: refusal.cause)) else { return .more }
    }
    guard let stream else { return .waiting }
    return try stream.pull { event in
      switch event {
      case .targetCurrent(let id, _, _), .targetRemoved(let id, _): unsettled.remove(id)
      default: break
      }
      return try emit(event)
    }
  }

  /// Ends the stream; nothing is told any more.
  func end() {
    stream?.end()
    stream = nil
    refusals = []
  }

  private static func cause(_ reason: RefusedTarget) -> Status {
    switch reason {
    case .invalid(let error): Status(error, database: nil)
    case .pipeline: Status(.unimplemented, "This version of hearth does not follow pipelines; follow a query.")
    }
  }
}
