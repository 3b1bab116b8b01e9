import Foundation

/// Follows a target while its task runs. If the connection breaks, connects again and resumes.
struct Listener: Sendable {
  let client: Hearth
  /// Returns the request that resumes from a token.
  let request: @Sendable (ResumeToken?) -> HearthRequest
  let token: ResumeToken?

  /// Returns the consistent results, one after another. A slow reader gets only the newest.
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
        // The server is unreachable or overloaded, or a token that was valid at first has expired. Try again while
        // the stream has a reader; a new attempt uses a new token.
      }
      if isAdmitted { backoff.reset() }
      try Task.checkCancellation()
      try await backoff.wait()
    }
  }

  /// Follows the target over one connection until it ends.
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
