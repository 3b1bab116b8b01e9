import Dispatch
import Synchronization

/// The connections for the content of files. They are apart from those of the log, so a large file delays no commit.
final class ContentConnections: Sendable {
  /// A connection that one thread at a time uses.
  private final class Slot: Sendable {
    let connection: Mutex<PostgresConnection>

    init(_ url: String) throws(PostgresFailure) { connection = Mutex(try PostgresConnection(url)) }
  }

  /// The longest wait for a free connection, in seconds.
  private static let waitSeconds = 60

  private let idle: Mutex<[Slot]>
  private let free: DispatchSemaphore

  /// Creates connections, which open with their first use.
  init(_ url: String, count: Int) throws(PostgresFailure) {
    var slots: [Slot] = []
    for _ in 0..<count { slots.append(try Slot(url)) }
    idle = Mutex(slots)
    free = DispatchSemaphore(value: count)
  }

  /// Runs `body` with a connection that no other thread uses meanwhile.
  /// - Throws: ``PostgresFailure/noAnswer`` if none becomes free; the errors of `body`.
  func use<R: Sendable>(
    _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    guard free.wait(timeout: .now() + .seconds(Self.waitSeconds)) == .success else { throw .noAnswer }
    defer { free.signal() }
    // The semaphore counts them. The last one used is open for certain.
    guard let slot = idle.withLock({ $0.popLast() }) else { throw .noAnswer }
    defer { idle.withLock { $0.append(slot) } }
    return try slot.connection.withLock { (connection) throws(PostgresFailure) in try body(connection) }
  }
}
