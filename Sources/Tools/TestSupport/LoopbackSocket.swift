package import Glibc

/// An error of a test's socket.
package struct LoopbackError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// A blocking TCP connection to a port of this machine. Use it on one thread at a time.
///
/// Every wait has a time limit, so a missing response makes a test fail instead of hang.
package final class LoopbackSocket {
  /// The result of reading from a connection.
  package enum Received: Equatable, Sendable {
    case bytes([UInt8])
    /// The server has closed or reset the connection.
    case ended
    /// The time limit has passed without a byte.
    case timedOut
  }

  private var descriptor: Int32

  /// Connects to `port`. A read or write that makes no progress for the given number of seconds fails.
  /// - Throws: ``LoopbackError`` if the connection is not accepted.
  package init(port: UInt16, readSeconds: Int = 30, writeSeconds: Int = 30) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw LoopbackError("no socket: errno \(errno)") }
    setOption(SOL_SOCKET, SO_RCVTIMEO, timeval(tv_sec: readSeconds, tv_usec: 0))
    setOption(SOL_SOCKET, SO_SNDTIMEO, timeval(tv_sec: writeSeconds, tv_usec: 0))
    setOption(Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1))
    let status = LoopbackAddress.with(port: port) { connect(descriptor, $0, $1) }
    guard status == 0 else { throw LoopbackError("cannot connect to port \(port): errno \(errno)") }
  }

  deinit { close() }

  /// Closes the connection.
  package func close() {
    if descriptor >= 0 { _ = Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Sends bytes. Returns how many of them the kernel accepted: fewer than given if the server stops reading or
  /// closes the connection.
  @discardableResult
  package func send(_ bytes: some Collection<UInt8>) -> Int {
    let bytes = Array(bytes)
    return bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
        let count = Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        sent += count
      }
      return sent
    }
  }

  /// Sends text. Returns the number of bytes sent, as ``send(_:)-(Collection)``.
  @discardableResult
  package func send(_ text: String) -> Int { send(text.utf8) }

  /// Waits for at least one byte, and returns at most `countMax` bytes.
  package func receive(_ countMax: Int = 1 << 16) -> Received {
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: countMax) { buffer, count in
      var received = 0
      // A signal to the process interrupts a call with a time limit.
      repeat {
        received = recv(descriptor, buffer.baseAddress, countMax, 0)
        failure = received < 0 ? errno : 0
      } while failure == EINTR
      count = max(0, received)
    }
    if !bytes.isEmpty { return .bytes(bytes) }
    return failure == EAGAIN ? .timedOut : .ended
  }

  /// Reads until a text arrives or the connection ends. Returns what arrived.
  package func read(until text: String) -> String {
    var found: [UInt8] = []
    while !String(decoding: found, as: UTF8.self).contains(text), case .bytes(let bytes) = receive() { found += bytes }
    return String(decoding: found, as: UTF8.self)
  }

  /// Waits until the server closes or resets the connection, and discards what it sends before. Returns `false` if
  /// the time limit passes first.
  package func isCut() -> Bool {
    while true {
      switch receive() {
      case .bytes: continue
      case .ended: return true
      case .timedOut: return false
      }
    }
  }

  /// Closes the sending direction. The server's response can still be read.
  package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes the connection with a reset.
  package func reset() {
    setOption(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  private func setOption<Value: BitwiseCopyable>(_ level: Int32, _ option: Int32, _ value: Value) {
    withUnsafeBytes(of: value) { _ = setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) }
  }
}

/// IPv4 addresses of this machine.
package enum LoopbackAddress {
  /// 127.0.0.1.
  package static let host: UInt32 = 0x7F00_0001

  /// Calls `body` with a socket address.
  /// - Throws: the error of `body`.
  package static func with<Result>(
    host: UInt32 = host, port: UInt16, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) throws -> Result
  ) rethrows -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = host.bigEndian
    return try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  /// Binds a new socket to a port, or to a free one if `port` is 0. It does not listen yet, so connections are
  /// refused. As long as it does not listen, the port can be bound again. The caller closes it.
  /// - Throws: ``LoopbackError`` if the port is in use.
  package static func bind(host: UInt32 = host, port: UInt16 = 0) throws -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    func permitReuse() {
      var isReusable: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReusable, socklen_t(MemoryLayout<Int32>.size))
    }
    // With this option the system could choose a port that another socket is bound to already.
    if port != 0 { permitReuse() }
    let bound = with(host: host, port: port) { address, length -> UInt16? in
      var length = length
      guard Glibc.bind(descriptor, address, length) == 0, getsockname(descriptor, address, &length) == 0 else {
        return nil
      }
      return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
    }
    guard let bound else {
      let code = errno
      _ = close(descriptor)
      throw LoopbackError("cannot bind to port \(port): errno \(code)")
    }
    permitReuse()
    return (descriptor, bound)
  }
}
