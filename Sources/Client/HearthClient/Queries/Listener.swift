import Foundation

/// Follows a target as long as its task runs: connects again where the connection breaks, and goes on where it was.
struct Listener: Sendable {
  let client: Hearth
  /// The request that goes on from a token.
  let request: @Sendable (ResumeToken?) -> HearthRequest
  let token: ResumeToken?

  /// The consistent results, one after the other. Whoever takes them slowly gets the newest.
  func states() -> AsyncThrowingStream<ListenedResults, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { states in
      let task = Task {
        do {
          try await run(states)
        } catch {
          states.finish(throwing: error is CancellationError ? nil : error)
        }
      }
      states.onTermination = { _ in task.cancel() }
    }
  }

  private func run(_ states: AsyncThrowingStream<ListenedResults, any Error>.Continuation) async throws {
    var results = ListenedResults(resumingFrom: token)
    var backoff = Backoff(firstSeconds: 0.1, maxSeconds: 30)
    while true {
      var isAdmitted = false
      do {
        try await listen(&results, isAdmitted: &isAdmitted, states)
      } catch let error as HearthClientError where error.isRetryable || isAdmitted && error.code == .unauthenticated {
        // The server is away, or has too much to do; it is asked again until the reader goes. A token that came to its
        // end is followed by another.
      }
      if isAdmitted { backoff.reset() }
      try Task.checkCancellation()
      try await backoff.wait()
    }
  }

  /// Follows the target over one connection, to its end.
  private func listen(
    _ results: inout ListenedResults, isAdmitted: inout Bool,
    _ states: AsyncThrowingStream<ListenedResults, any Error>.Continuation
  ) async throws {
    results.reconnect()
    var request = request(results.token)
    request.headers["Accept"] = "text/event-stream"
    var parser = EventParser()
    for try await data in try await client.connection.open(request) {
      for event in try parser.take(data) {
        switch try results.take(event, from: client) {
        case .wait: break
        case .consistent(let isNew):
          isAdmitted = true
          if isNew { states.yield(results) }
        case .startAnew: return
        }
      }
    }
  }
}
