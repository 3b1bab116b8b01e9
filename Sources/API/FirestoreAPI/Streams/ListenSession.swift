import DatabaseService
import DocumentModel
import WireFormat

/// A Listen stream that its first request opens, for gRPC and WebChannel. It also reports targets that could not be
/// decoded. Use it on the loop's thread of its client only.
final class ListenSession {
  /// The limit of rejected targets that wait to be sent. The stream of a client that exceeds it ends.
  static let refusalsMax = 100

  private let service: FirestoreService
  private let caller: Caller
  private let wake: @Sendable () -> Void
  private var stream: ListenStream?
  private var refusals: [(target: Int32, cause: Status)] = []
  /// The targets that were added and have neither become current nor ended.
  private var unsettled = Set<Int32>()

  /// Creates a stream for a caller. `wake` is called on any thread if an event may be available.
  init(_ service: FirestoreService, as caller: Caller, wake: @escaping @Sendable () -> Void) {
    self.service = service
    self.caller = caller
    self.wake = wake
  }

  /// Whether every added target has reached its first consistent state or has ended.
  var isSettled: Bool { unsettled.isEmpty && refusals.isEmpty }

  /// Handles a request. `database` is the stream's database, the same in every call.
  ///
  /// - Throws: an error that ends the stream.
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
        throw Status(.resourceExhausted, "More than \(Self.refusalsMax) refused targets are pending.")
      }
      refusals.append((target, Self.cause(reason)))
    }
  }

  /// Calls `emit` for each event until it returns `false`. The values that an event borrows are valid only during
  /// the call.
  ///
  /// - Throws: the errors of `emit`, and ``Status`` if the stream as a whole cannot continue.
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

  /// Ends the stream. It emits no more events.
  func end() {
    stream?.end()
    stream = nil
    refusals = []
  }

  private static func cause(_ reason: RefusedTarget) -> Status {
    switch reason {
    case .invalid(let error): Status(error, database: nil)
    case .pipeline: Status(.unimplemented, "This version of hearth cannot listen to pipelines. Listen to a query.")
    }
  }
}
