import Foundation
import Glibc
import Synchronization
import TestSupport

/// A proxy between a client and a server on this machine that breaks connections as a test requests.
final class CuttingProxy: Sendable {
  /// The treatment of a connection. Steps apply to connections in order; later connections pass.
  enum Step: Sendable {
    case pass
    /// The connection ends after that many bytes to the server, with a reset, or from the server, all of which arrive.
    case cut(up: Int = .max, down: Int = .max)
    /// The proxy reads the first request and responds with a status instead of the server.
    case answer(Int)
  }

  private struct State {
    var steps: [Step]
    /// The listening socket, and whether a thread accepts connections from it. That thread closes it at its end.
    var listener: Int32
    var isListening = true
    var upBytes = 0
    var downBytes = 0
    /// The target of the latest request that sent a part of an upload.
    var upload: String?
  }

  let port: UInt16
  private let target: UInt16
  private let state: Mutex<State>

  init(to target: UInt16, _ steps: [Step]) throws {
    self.target = target
    let (listener, port) = try LoopbackAddress.bind()
    self.port = port
    state = Mutex(State(steps: steps, listener: listener))
    try take(from: listener)
  }

  deinit {
    let (listener, isListening) = state.withLock { ($0.listener, $0.isListening) }
    if isListening { shutdown(listener, Int32(SHUT_RDWR)) } else { close(listener) }
  }

  /// Refuses connections from now on, like the machine of a stopped server.
  func refuse() throws {
    try state.withLock { state in
      guard state.isListening else { return }
      shutdown(state.listener, Int32(SHUT_RDWR))
      state.isListening = false
      // Bind a new socket immediately, so that no other process gets the port. Without listening, it refuses clients.
      state.listener = try LoopbackAddress.bind(port: port).descriptor
    }
  }

  /// Accepts connections again.
  func resume() throws {
    try state.withLock { state in
      guard !state.isListening else { return }
      try take(from: state.listener)
      state.isListening = true
    }
  }

  private func take(from listener: Int32) throws {
    guard listen(listener, 16) == 0 else { throw CocoaError(.fileReadUnknown) }
    Thread { [weak self, target] in
      // Only this thread closes the socket, after it was shut down. Otherwise the descriptor could become that of
      // another test's socket while this thread still calls `accept`.
      defer { close(listener) }
      while true {
        let client = accept(listener, nil, nil)
        if client < 0 {
          if errno == EINVAL { return }
          continue
        }
        guard let self else {
          close(client)
          continue
        }
        serve(client, target, step())
      }
    }.start()
  }

  /// The number of bytes sent to the server.
  var upBytes: Int { state.withLock { $0.upBytes } }
  /// The number of bytes received from the server.
  var downBytes: Int { state.withLock { $0.downBytes } }
  /// Whether all steps have been applied.
  var isThrough: Bool { state.withLock { $0.steps.isEmpty } }

  /// Waits until the server has noticed that the connection of the latest upload in parts broke. Before that, it
  /// rejects other requests for the upload with status 503. No client may be connected to the server.
  func waitUntilUploadIsFree() -> Bool {
    guard let upload = state.withLock({ $0.upload }) else { return true }
    let client = TestHTTPClient(port: target)
    return OtherProcess.eventually {
      // This connection is the only one.
      let metrics = try? client.send("GET", "/metrics")
      guard metrics?.text.contains("\nhearth_http_connections_open 1\n") == true else { return false }
      return (try? client.send("PUT", upload, headers: [("Content-Range", "bytes */*")], body: []))?.status != 503
    }
  }

  /// Returns the target of a request for an upload in parts, or `nil` if the bytes do not begin such a request.
  private static func upload(in bytes: [UInt8]) -> String? {
    guard bytes.starts(with: Array("PUT ".utf8)), let end = bytes.dropFirst(4).firstIndex(of: 0x20) else { return nil }
    let target = String(decoding: bytes[4..<end], as: UTF8.self)
    return target.contains("upload_id=") ? target : nil
  }

  private func step() -> Step { state.withLock { $0.steps.isEmpty ? .pass : $0.steps.removeFirst() } }

  private func serve(_ client: Int32, _ target: UInt16, _ step: Step) {
    defer { close(client) }
    var (upMax, downMax) = (Int.max, Int.max)
    switch step {
    case .pass: break
    case .cut(let up, let down): (upMax, downMax) = (up, down)
    case .answer(let status):
      guard Self.takeRequest(client) else { return }
      _ = Self.send(client, Array("HTTP/1.1 \(status) X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
      return
    }
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(server) }
    guard LoopbackAddress.with(port: target, { connect(server, $0, $1) }) == 0 else { return }
    while upMax > 0, downMax > 0 {
      var entries = [
        pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&entries, 2, -1) > 0 else { return }
      if entries[0].revents != 0 {
        let bytes = Self.receive(client, min(upMax, 64 << 10))
        guard !bytes.isEmpty, Self.send(server, bytes) else { return }
        upMax -= bytes.count
        let upload = Self.upload(in: bytes)
        state.withLock { state in
          state.upBytes += bytes.count
          if let upload { state.upload = upload }
        }
      }
      if entries[1].revents != 0 {
        let bytes = Self.receive(server, min(downMax, 64 << 10))
        guard !bytes.isEmpty, Self.send(client, bytes) else { return }
        downMax -= bytes.count
        state.withLock { $0.downBytes += bytes.count }
      }
    }
    guard upMax == 0 else { return }
    var linger = linger(l_onoff: 1, l_linger: 0)
    for descriptor in [client, server] {
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    }
  }

  /// Reads a request to its end, as Content-Length gives it.
  private static func takeRequest(_ client: Int32) -> Bool {
    var bytes: [UInt8] = []
    while true {
      let more = receive(client, 64 << 10)
      if more.isEmpty { return false }
      bytes += more
      guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { continue }
      let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
      let length = head.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
        .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
      if bytes.count - end.upperBound >= length ?? 0 { return true }
    }
  }

  private static func receive(_ descriptor: Int32, _ countMax: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: countMax) { buffer, count in
      count = max(0, recv(descriptor, buffer.baseAddress, countMax, 0))
    }
  }

  private static func send(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }
}
