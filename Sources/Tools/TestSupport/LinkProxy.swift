import Foundation
package import Glibc
import Synchronization

/// The links from processes of this machine to one server of it, which a test can break: a proxy on a loopback port.
///
/// Each link can have a fault of its own, if the proxy knows its clients. One thread forwards all bytes, at most 256 KiB of
/// a direction at a time.
package final class LinkProxy: Sendable {
  /// The state of a link.
  package enum Fault: Sendable, Equatable {
    case none
    /// Connections are reset, also new ones.
    case cut
    /// No byte arrives, but connections stay, and new ones are accepted: a network that loses everything. The end of a
    /// connection arrives when the link is healed, after the bytes that waited.
    case hold
    /// The same for the bytes to the server only.
    case holdRequests
    /// The same for the bytes from the server only.
    case holdAnswers
    /// The beginning of an answer is lost with its connection, at random: the server has the request then.
    case loseAnswers(oneIn: Int)
  }

  /// The place of the server.
  package enum Target: Sendable, Equatable {
    case port(UInt16)
    /// A Unix socket.
    case path(String)
  }

  /// The port at which the server is reached through this proxy.
  package let port: UInt16
  private let control: Control

  /// Creates a proxy whose links pass everything. Without a target, it resets connections until ``setTarget(_:)``.
  ///
  /// - Parameters:
  ///   - host: the address at which it listens, one of the calling thread's network.
  ///   - identify: returns the number of the client that has a connection from a port to that of the proxy, for
  ///     ``set(_:from:)``. Called on the thread of the proxy. Connections of others are reset.
  ///   - seed: that of random faults.
  ///   - onLoss: called for each answer that ``Fault/loseAnswers(oneIn:)`` lost, on the thread of the proxy.
  /// - Throws: ``LoopbackError`` if no port or pipe can be made.
  package init(
    to target: Target? = nil, host: UInt32 = LoopbackAddress.host, seed: UInt64 = 1,
    onLoss: @escaping @Sendable () -> Void = {},
    identify: (@Sendable (UInt16, UInt16) -> Int?)? = nil
  ) throws {
    let (listener, port) = try LoopbackAddress.bind(host: host)
    self.port = port
    control = try Control(target)
    guard listen(listener, 128) == 0 else { throw LoopbackError("cannot listen: errno \(errno)") }
    let forwarder = Forwarder(listener, port, control, SplitMix(seed: seed), onLoss: onLoss, identify)
    Thread { forwarder.run() }.start()
  }

  deinit { control.change { $0.isStopped = true } }

  /// Sets the place of the server, for new connections.
  package func setTarget(_ target: Target) { control.change { $0.target = target } }

  /// Breaks or heals the links of one client, or of all.
  package func set(_ fault: Fault, from client: Int? = nil) {
    control.change { state in
      if let client {
        state.faults[client] = fault
      } else {
        (state.fault, state.faults) = (fault, [:])
      }
    }
  }

  /// The state that the thread of a proxy and its test share.
  fileprivate final class Control: Sendable {
    struct State {
      var target: Target?
      var fault = Fault.none
      var faults: [Int: Fault] = [:]
      var isStopped = false

      func fault(of client: Int?) -> Fault { client.flatMap { faults[$0] } ?? fault }
    }

    let state: Mutex<State>
    /// A byte in this pipe wakes the thread.
    let wakeReader: Int32
    private let wakeWriter: Int32

    init(_ target: Target?) throws {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { throw LoopbackError("no pipe: errno \(errno)") }
      for end in ends {
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
      }
      (wakeReader, wakeWriter) = (ends[0], ends[1])
      state = Mutex(State(target: target))
    }

    deinit {
      close(wakeReader)
      close(wakeWriter)
    }

    func change(_ change: (inout State) -> Void) {
      state.withLock { change(&$0) }
      var byte: UInt8 = 0
      _ = write(wakeWriter, &byte, 1)
    }
  }
}

/// The thread of a proxy.
///
/// `@unchecked Sendable`: only the thread uses it.
private final class Forwarder: @unchecked Sendable {
  private let listener: Int32
  private let port: UInt16
  private let control: LinkProxy.Control
  private var random: SplitMix
  private let onLoss: @Sendable () -> Void
  private let identify: (@Sendable (UInt16, UInt16) -> Int?)?
  private var links: [ProxiedLink] = []

  init(
    _ listener: Int32, _ port: UInt16, _ control: LinkProxy.Control, _ random: SplitMix,
    onLoss: @escaping @Sendable () -> Void, _ identify: (@Sendable (UInt16, UInt16) -> Int?)?
  ) {
    self.listener = listener
    self.port = port
    self.control = control
    self.random = random
    self.onLoss = onLoss
    self.identify = identify
  }

  func run() {
    defer {
      close(listener)
      for link in links { link.reset() }
    }
    while true {
      let state = control.state.withLock { $0 }
      if state.isStopped { return }
      links.removeAll { link in
        guard state.fault(of: link.client) == .cut else { return false }
        link.reset()
        return true
      }
      var entries = [
        pollfd(fd: control.wakeReader, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
      ]
      for link in links { entries += link.entries(state.fault(of: link.client)) }
      guard poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { return }
      if entries[0].revents != 0 {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(control.wakeReader, &bytes, bytes.count) > 0 {}
        // The faults are others now.
        continue
      }
      var ended: Set<ObjectIdentifier> = []
      for (index, link) in links.enumerated() {
        let ready = entries[(2 + 2 * index)..<(4 + 2 * index)].map { $0.revents != 0 }
        if !link.forward(ready, state.fault(of: link.client), state.target, &random, onLoss: onLoss) {
          ended.insert(ObjectIdentifier(link))
        }
      }
      links.removeAll { ended.contains(ObjectIdentifier($0)) }
      if entries[1].revents != 0 { take(state) }
    }
  }

  private func take(_ state: LinkProxy.Control.State) {
    let client = accept(listener, nil, nil)
    guard client >= 0 else { return }
    let name = identify.flatMap { identify in Self.port(of: client).flatMap { identify($0, port) } }
    let link = ProxiedLink(client, of: name)
    let isUnknown = identify != nil && name == nil
    if isUnknown || state.target == nil || state.fault(of: name) == .cut { return link.reset() }
    links.append(link)
  }

  /// The port of the other end of a connection.
  private static func port(of connection: Int32) -> UInt16? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(connection, $0, &length) }
    }
    return status == 0 ? UInt16(bigEndian: address.sin_port) : nil
  }
}

/// One connection through a proxy. Its two directions are numbered by their sources: 0 is the client, 1 the server.
private final class ProxiedLink {
  let client: Int?
  /// The sockets. That of the server is opened for the first byte, and -1 before.
  private var ends: [Int32]
  private var waiting: [[UInt8]] = [[], []]
  /// Whether a source has ended.
  private var isEnded = [false, false]
  /// Whether the end of a source was passed on.
  private var isShut = [false, false]
  /// Whether the client sent something since the last answer.
  private var isAsked = false
  private static let waitingMax = 256 << 10

  init(_ descriptor: Int32, of client: Int?) {
    self.client = client
    ends = [descriptor, -1]
    Self.prepare(descriptor)
  }

  private static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var on: Int32 = 1
    // Of no effect for a Unix socket.
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func isHeld(_ source: Int, _ fault: LinkProxy.Fault) -> Bool {
    switch fault {
    case .hold: true
    case .holdRequests: source == 0
    case .holdAnswers: source == 1
    case .none, .cut, .loseAnswers: false
    }
  }

  private func reads(_ source: Int, _ fault: LinkProxy.Fault) -> Bool {
    ends[source] >= 0 && !isEnded[source] && waiting[source].count < Self.waitingMax && !Self.isHeld(source, fault)
  }

  /// The events for which the link waits. An end without one is left out, because `poll` always reports its end.
  func entries(_ fault: LinkProxy.Fault) -> [pollfd] {
    (0..<2).map { end in
      var events: Int16 = 0
      if reads(end, fault) { events |= Int16(POLLIN) }
      if !waiting[1 - end].isEmpty, !Self.isHeld(1 - end, fault) { events |= Int16(POLLOUT) }
      return pollfd(fd: events == 0 ? -1 : ends[end], events: events, revents: 0)
    }
  }

  /// Forwards what can be forwarded. Returns `false` if the link is over.
  func forward(
    _ ready: [Bool], _ fault: LinkProxy.Fault, _ target: LinkProxy.Target?, _ random: inout SplitMix,
    onLoss: () -> Void
  ) -> Bool {
    for source in 0..<2 where ready[source] && reads(source, fault) {
      let bytes = receive(source)
      guard let bytes else { return over() }
      if source == 0, !bytes.isEmpty {
        isAsked = true
        if ends[1] < 0, !connect(to: target) { return over() }
      }
      if source == 1, isAsked, !bytes.isEmpty {
        isAsked = false
        if case .loseAnswers(let count) = fault, random.chance(oneIn: count) {
          onLoss()
          return over()
        }
      }
      waiting[source] += bytes
    }
    for source in 0..<2 where !Self.isHeld(source, fault) {
      guard flush(source) else { return over() }
    }
    let isUnused = isEnded[0] && ends[1] < 0
    return isUnused || (isShut[0] && isShut[1]) ? over() : true
  }

  /// Returns what a source sent; `nil` after an error.
  private func receive(_ source: Int) -> [UInt8]? {
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
      let received = recv(ends[source], buffer.baseAddress, buffer.count, 0)
      failure = received < 0 ? errno : 0
      if received == 0 { isEnded[source] = true }
      count = max(0, received)
    }
    return failure == 0 || failure == EAGAIN || failure == EINTR ? bytes : nil
  }

  /// Passes on what waits from a source, then its end. Returns `false` after an error.
  private func flush(_ source: Int) -> Bool {
    let destination = ends[1 - source]
    guard destination >= 0 else { return true }
    while !waiting[source].isEmpty {
      let sent = waiting[source].withUnsafeBytes { send(destination, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent < 0 { return errno == EAGAIN || errno == EINTR }
      waiting[source].removeFirst(sent)
    }
    if isEnded[source], !isShut[source] {
      shutdown(destination, Int32(SHUT_WR))
      isShut[source] = true
    }
    return true
  }

  private func connect(to target: LinkProxy.Target?) -> Bool {
    let status: Int32
    switch target {
    case nil: return false
    case .port(let port):
      ends[1] = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      status = LoopbackAddress.with(port: port) { Glibc.connect(ends[1], $0, $1) }
    case .path(let path):
      ends[1] = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      status = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Glibc.connect(ends[1], $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
    }
    guard ends[1] >= 0, status == 0 else { return false }
    Self.prepare(ends[1])
    return true
  }

  private func over() -> Bool {
    // After an orderly end, both sides have everything.
    if isShut[0], isShut[1] {
      for end in ends { close(end) }
    } else {
      reset()
    }
    return false
  }

  /// Ends the connection with a reset.
  func reset() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    for end in ends where end >= 0 {
      setsockopt(end, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
      close(end)
    }
    ends = [-1, -1]
  }
}

/// Tells which process has a TCP connection.
package enum ConnectionOwner {
  /// Returns the position in a list of the process that has the connection from a loopback port to another; `nil` if none
  /// of them has it.
  ///
  /// Cost: one pass over the bytes of `/proc/net/tcp`, which has thousands of lines after a test with many connections.
  package static func index(of port: UInt16, to other: UInt16, among processes: [pid_t]) -> Int? {
    func address(_ port: UInt16) -> String {
      let digits = String(port, radix: 16, uppercase: true)
      return "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
    }
    let place = " \(address(port)) \(address(other)) "
    let line = (file("/proc/net/tcp") + [0]).withUnsafeBytes { table -> String? in
      // Foundation's search is too slow for a test under load.
      guard let start = table.bindMemory(to: CChar.self).baseAddress, let found = strstr(start, place) else {
        return nil
      }
      let rest = UnsafeRawBufferPointer(rebasing: table[(found - UnsafeMutablePointer(mutating: start))...])
      return String(decoding: rest.prefix { $0 != 0x0A }, as: UTF8.self)
    }
    // The fields before it are the two addresses, the state, the queues, timers, the user and the timeout.
    guard let words = line?.split(separator: " "), words.count > 8 else { return nil }
    return processes.firstIndex { has($0, socket: "socket:[\(words[8])]") }
  }

  private static func file(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    var count = 0
    while true {
      if bytes.count - count < 32 << 10 { bytes += [UInt8](repeating: 0, count: bytes.count) }
      let more = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress.map { $0 + count }, $0.count - count) }
      guard more > 0 else { return Array(bytes[..<count]) }
      count += more
    }
  }

  private static func has(_ process: pid_t, socket: String) -> Bool {
    let directory = "/proc/\(process)/fd"
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    var target = [CChar](repeating: 0, count: 64)
    return descriptors.contains { descriptor in
      let count = readlink("\(directory)/\(descriptor)", &target, target.count)
      return count > 0 && target[..<count].elementsEqual(socket.utf8.lazy.map { CChar(bitPattern: $0) })
    }
  }
}
