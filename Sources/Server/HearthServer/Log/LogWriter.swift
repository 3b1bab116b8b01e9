import Dispatch
import Glibc
import Synchronization

/// Writes log events to a descriptor, from any thread, without waiting for a slow reader.
///
/// Lines wait in memory, up to 1 MiB, while a background thread writes. If there is no room, lines are dropped and
/// counted. As soon as there is room again, a line reports the number.
public final class LogWriter: Sendable {
  private struct State {
    var waiting: [UInt8] = []
    var droppedSinceLine = 0
    var isWriting = false
  }

  /// The most bytes of waiting lines.
  static let waitingBytesMax = 1 << 20

  private let descriptor: Int32
  private let format: LogFormat
  private let levelMin: LogEvent.Level
  private let now: @Sendable () -> Int64
  private let state = Mutex(State())
  private let dropped = Atomic(0)
  private let queue = DispatchQueue(label: "hearth.log", qos: .utility)

  /// Creates a writer of events of `levelMin` and above to a descriptor, by default standard error. The caller owns
  /// the descriptor, which must outlive the writer. `now` returns the time in microseconds since 1970.
  public init(
    descriptor: Int32 = 2, format: LogFormat = .plain, levelMin: LogEvent.Level = .info,
    now: @escaping @Sendable () -> Int64 = LogWriter.timeOfDay
  ) {
    self.descriptor = descriptor
    self.format = format
    self.levelMin = levelMin
    self.now = now
  }

  /// The number of lines dropped since the start.
  public var droppedLines: Int { dropped.load(ordering: .relaxed) }

  /// Returns whether events of a level are written. Check it to avoid creating events in vain.
  public func takes(_ level: LogEvent.Level) -> Bool { level >= levelMin }

  /// Queues an event. Cost: formatting the line, and a short lock.
  public func write(_ event: LogEvent) {
    guard takes(event.level) else { return }
    var line: [UInt8] = []
    line.reserveCapacity(256)
    format.append(event, at: now(), to: &line)
    let isIdle = state.withLock { state -> Bool in
      guard state.waiting.count + line.count <= Self.waitingBytesMax else {
        state.droppedSinceLine += 1
        dropped.wrappingAdd(1, ordering: .relaxed)
        return false
      }
      state.waiting.append(contentsOf: line)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if isIdle { queue.async { [self] in writeWaiting() } }
  }

  /// Waits until all queued events are written, or until the timeout. Call it before the process ends.
  public func flush(timeoutMilliseconds: Int = 1000) {
    let done = DispatchSemaphore(value: 0)
    queue.async { done.signal() }
    _ = done.wait(timeout: .now() + .milliseconds(timeoutMilliseconds))
  }

  private func writeWaiting() {
    while true {
      let bytes = state.withLock { state -> [UInt8] in
        var bytes: [UInt8] = []
        swap(&bytes, &state.waiting)
        if state.droppedSinceLine > 0 {
          let event = LogEvent(
            .warn, "log.dropped", "the log's reader is too slow; \(state.droppedSinceLine) lines were dropped",
            [("lines", .integer(state.droppedSinceLine))])
          format.append(event, at: now(), to: &bytes)
          state.droppedSinceLine = 0
        }
        if bytes.isEmpty { state.isWriting = false }
        return bytes
      }
      if bytes.isEmpty { return }
      writeAll(bytes)
    }
  }

  /// Writes all bytes, also to a non-blocking descriptor. Drops them if the reader has closed it.
  private func writeAll(_ bytes: [UInt8]) {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        Glibc.write(descriptor, buffer.baseAddress.map { $0 + offset }, buffer.count - offset)
      }
      if count >= 0 {
        offset += count
      } else if errno == EAGAIN {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&waiting, 1, 1000)
      } else if errno != EINTR {
        return
      }
    }
  }

  /// Returns the current time in microseconds since 1970.
  @Sendable public static func timeOfDay() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}
