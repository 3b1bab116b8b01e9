import Glibc

/// The program that started and supervises the server: systemd, or another one with the same protocols. They consist of
/// environment variables and sockets, so no library is needed.
///
/// - The supervisor passes a listening socket as descriptor 3 (`LISTEN_FDS`, `LISTEN_PID`). While one server stops and
///   the next starts, the kernel queues new connections.
/// - The server sends its state as datagrams to a socket (`NOTIFY_SOCKET`).
/// - The watchdog expects a regular message (`WATCHDOG_USEC`).
struct Supervisor {
  private let notifyPath: String?
  private let socketCount: Int
  private let watchdogMicroseconds: Int?

  /// The descriptor of the first socket that the supervisor passes.
  private static let firstDescriptor: Int32 = 3

  /// Reads the variables and removes them, so that commands that the server runs do not use them.
  init() {
    func take(_ name: String) -> String? {
      defer { unsetenv(name) }
      return DatabaseChoice.environment(name)
    }
    let isForUs = take("LISTEN_PID").flatMap { Int32($0) } == getpid()
    socketCount = take("LISTEN_FDS").flatMap { Int($0) }.map { isForUs ? $0 : 0 } ?? 0
    _ = take("LISTEN_FDNAMES")
    notifyPath = take("NOTIFY_SOCKET")
    let isWatched = take("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
    watchdogMicroseconds = take("WATCHDOG_USEC").flatMap { Int($0) }.flatMap { isWatched && $0 > 0 ? $0 : nil }
  }

  /// Whether a supervisor receives the server's state.
  var isPresent: Bool { notifyPath != nil }

  /// Returns the listening socket that the supervisor passed, or `nil` if it passed no socket.
  /// - Throws: ``CommandFailure`` if there are several.
  func listeningSocket() throws -> Int32? {
    guard socketCount <= 1 else {
      throw CommandFailure.failed(
        "the supervisor passed \(socketCount) sockets (LISTEN_FDS), but the server listens on one; keep only one "
          + "ListenStream= in the socket unit")
    }
    return socketCount == 1 ? Self.firstDescriptor : nil
  }

  /// Sends states such as `READY=1`, one per line. Errors are ignored, because the server does not depend on them.
  func notify(_ states: String) {
    guard let notifyPath else { return }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var path = Array(notifyPath.utf8)
    let isAbstract = path.first == UInt8(ascii: "@")
    if isAbstract { path[0] = 0 }
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { room in
      // A path ends with a zero byte. An abstract name does not.
      guard path.count < room.count else { return false }
      room.copyBytes(from: path)
      return true
    }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard fits, descriptor >= 0 else { return }
    defer { close(descriptor) }
    let length = MemoryLayout<sa_family_t>.size + path.count + (isAbstract ? 0 : 1)
    let text = Array(states.utf8)
    withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        _ = sendto(descriptor, text, text.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), address, socklen_t(length))
      }
    }
  }

  /// Announces that the configuration is being reloaded. `READY=1` must follow.
  func notifyReloading() {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    notify("RELOADING=1\nMONOTONIC_USEC=\(Int(time.tv_sec) * 1_000_000 + Int(time.tv_nsec) / 1000)")
  }

  /// Waits for one of the signals, which must be blocked. Returns `nil` if it was interrupted, or when the watchdog is
  /// due; it then notifies the watchdog if `isAlive` returns true.
  func wait(for signals: sigset_t, isAlive: () -> Bool) -> Int32? {
    var signals = signals
    guard let watchdogMicroseconds else {
      var signal: Int32 = 0
      return sigwait(&signals, &signal) == 0 ? signal : nil
    }
    let half = watchdogMicroseconds / 2
    var time = timespec(tv_sec: half / 1_000_000, tv_nsec: half % 1_000_000 * 1000)
    let signal = sigtimedwait(&signals, nil, &time)
    if signal > 0 { return signal }
    if isAlive() { notify("WATCHDOG=1") }
    return nil
  }
}
