import Foundation
import Synchronization

/// Clients that create documents with random IDs. Each sends the next one when it has the response to the last one, or a
/// second after the server refused it.
final class WaitingWriters: Sendable {
  /// The ends of some creates.
  struct Ends: Sendable {
    /// The seconds that each create took, in the order of the ends.
    var created: [Double] = []
    /// The creates that the server refused with RESOURCE_EXHAUSTED, because it has too many commits or large bodies.
    var refused = 0
    /// Other responses, by status, with 0 for a connection that was cut.
    var failures: [Int: Int] = [:]

    /// The seconds within which a share of the creates ended.
    func seconds(of share: Double) -> Double {
      created.isEmpty ? 0 : created.sorted()[min(created.count - 1, Int(Double(created.count) * share))]
    }
  }

  private let isStopped = Atomic(false)
  private let ends = Mutex(Ends())
  private let running = DispatchGroup()

  init(_ clients: Int, port: Int, _ target: String, body: String) {
    for _ in 0..<clients {
      running.enter()
      let thread = Thread { [self] in
        while !isStopped.load(ordering: .relaxed) { create(port, "\(target)?documentId=\(UUID().uuidString)", body) }
        running.leave()
      }
      thread.start()
    }
  }

  private func create(_ port: Int, _ target: String, _ body: String) {
    let watch = Stopwatch()
    let status = (try? LoadClient.send("POST", port: port, target, body: body))?.status ?? 0
    let seconds = watch.seconds
    ends.withLock { ends in
      switch status {
      case 200: ends.created.append(seconds)
      case 429: ends.refused += 1
      default: ends.failures[status, default: 0] += 1
      }
    }
    if status == 429 { sleep(1) }
  }

  /// Returns the ends since the last call.
  func take() -> Ends {
    ends.withLock { ends in
      defer { ends = Ends() }
      return ends
    }
  }

  /// Waits for the responses that are still to come. Returns the ends since the last call of ``take()``.
  func stop() -> Ends {
    isStopped.store(true, ordering: .relaxed)
    running.wait()
    return take()
  }
}
