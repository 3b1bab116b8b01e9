import Dispatch
import Glibc
import Synchronization

/// Writes events to a descriptor, from any thread and without waiting for whoever reads it.
///
/// Lines wait in memory, up to 1 MiB, while a thread of the system's pool writes. When the reader is so slow that there
/// is no room, lines are dropped and counted; as soon as there is room again, a line says how many.
public final class LogWriter: Sendable {
  private struct State {
    var waiting: [UInt8] = []
    var droppedSinceLine = 0
    var isWriting = false
  }

  /// Bytes of lines that may wait.
  static let waitingBytesMax = 1 << 20

  private let descriptor: Int32
  private let format: LogFormat
  private let levelMin: LogEvent.Level
  private let now: @Sendable () -> Int64
  private let state = Mutex(State())
  private let dropped = Atomic(0)
  private let queue = DispatchQueue(label: "hearth.log", qos: .utility)

  /// Writes events of `levelMin` and above to a descriptor (standard error), which stays the caller's and must outlive the writer. `now`
  /// is the time of day in microseconds since 1970.
  public init(
    descriptor: Int32 = 2, format: LogFormat = .plain, levelMin: LogEvent.Level = .info,
    now: @escaping @Sendable () -> Int64 = LogWriter.timeOfDay
  ) {
    self.descriptor = descriptor
    self.format = format
    self.levelMin = levelMin
    self.now = now
  }

  /// Lines that were dropped since the start.
  public var droppedLines: Int { dropped.load(ordering: .relaxed) }

  /// Whether events of a level are written: spares the making of those that are not.
  public func takes(_ level: LogEvent.Level) -> Bool { level >= levelMin }

  /// Puts an event in line. Cost: the text of the line, and a short lock.
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

  /// Waits until what was put in line is written, at most so long. Call it before the process ends.
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

  /// Writes, also where the descriptor does not wait by itself. Where nobody reads any more the bytes are gone.
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

  /// The time of day in microseconds since 1970.
  @Sendable public static func timeOfDay() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}
