import Foundation
import Glibc
import Synchronization
import Testing

/// A network of this machine that loses packets if a test wants it: a namespace for each node of a cluster and one for
/// PostgreSQL, joined by a bridge in a namespace of its own. The addresses are 10.77.0.1 and so on.
///
/// A ``LinkProxy`` keeps the connections of both sides alive while it holds bytes. Here nothing is acknowledged, as if a
/// switch had failed, so the kernels send again, and the timeouts of TCP apply.
package final class TestNetwork: Sendable {
  /// A machine of the network.
  package enum Place: Hashable, Sendable {
    /// The node with an index from 0.
    case node(Int)
    case postgres
  }

  private static let count = Mutex(0)
  private let prefix: String
  private let places: [Place]

  /// Makes a network that passes everything.
  /// - Throws: an error if `ip` refuses a command.
  package init(nodes: Int) throws {
    let number = Self.count.withLock { count in
      count += 1
      return count
    }
    prefix = "hearth-\(getpid())-\(number)"
    places = [.postgres] + (0..<nodes).map { .node($0) }
    Self.removeAbandoned()
    try Self.ip("netns", "add", bridge)
    try Self.ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
    try Self.ip("-n", bridge, "link", "set", "bridge", "up")
    for place in places {
      let (name, port) = (namespace(of: place), port(of: place))
      try Self.ip("netns", "add", name)
      try Self.ip("-n", bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
      try Self.ip("-n", bridge, "link", "set", port, "master", "bridge", "up")
      try Self.ip("-n", name, "link", "set", "lo", "up")
      try Self.ip("-n", name, "addr", "add", "\(Self.address(of: place))/24", "dev", "eth0")
      try Self.ip("-n", name, "link", "set", "eth0", "up")
    }
  }

  deinit { for name in [bridge] + places.map({ namespace(of: $0) }) { try? Self.ip("netns", "del", name) } }

  /// Removes the namespaces of test runs that were killed.
  private static func removeAbandoned() {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
      let parts = name.split(separator: "-")
      guard parts.count > 2, parts[0] == "hearth", let process = pid_t(parts[1]) else { continue }
      if kill(process, 0) != 0, errno == ESRCH { try? ip("netns", "del", name) }
    }
  }

  /// The IPv4 address of a place, as a number and as text.
  static func host(of place: Place) -> UInt32 {
    switch place {
    case .postgres: 0x0A4D_0064
    case .node(let index): 0x0A4D_0001 + UInt32(index)
    }
  }

  static func address(of place: Place) -> String {
    let host = host(of: place)
    return [24, 16, 8, 0].map { String(host >> $0 & 255) }.joined(separator: ".")
  }

  /// Returns the words that execute a program at a place.
  func words(at place: Place) -> [String] { ["/usr/bin/nsenter", "--net=\(Self.path(namespace(of: place)))"] }

  /// Runs `body` on a thread at a place: the sockets that it makes belong there, also later.
  func run<Result: Sendable>(at place: Place, _ body: @escaping @Sendable () throws -> Result) throws -> Result {
    let path = Self.path(namespace(of: place))
    return try startThreads(1) { _ in
      Swift.Result {
        try Self.enter(path)
        return try body()
      }
    }()[0].get()
  }

  private static func enter(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    // Swift does not see its declaration.
    let enter = dlsym(nil, "setns").map { unsafeBitCast($0, to: (@convention(c) (Int32, Int32) -> Int32).self) }
    guard descriptor >= 0, enter?(descriptor, 0) == 0 else {
      throw LoopbackError("cannot enter \(path): errno \(errno)")
    }
  }

  // MARK: Faults

  /// Loses all packets between two places, and no others. Call it after ``loseNothing()``.
  package func lose(between place: Place, and other: Place) throws {
    for place in [place, other] { try setIsolated(place, "on") }
  }

  /// Loses all packets from and to a place.
  package func lose(around place: Place) throws {
    try Self.ip("-n", bridge, "link", "set", port(of: place), "nomaster")
  }

  /// Passes everything again.
  package func loseNothing() throws {
    for place in places {
      try Self.ip("-n", bridge, "link", "set", port(of: place), "master", "bridge")
      try setIsolated(place, "off")
    }
  }

  /// Isolated ports of a bridge do not reach each other, but all others.
  private func setIsolated(_ place: Place, _ value: String) throws {
    try Self.ip("-n", bridge, "link", "set", port(of: place), "type", "bridge_slave", "isolated", value)
  }

  // MARK: Names

  private var bridge: String { "\(prefix)-bridge" }

  private func namespace(of place: Place) -> String { "\(prefix)-\(port(of: place))" }

  private func port(of place: Place) -> String {
    switch place {
    case .postgres: "postgres"
    case .node(let index): "node\(index + 1)"
    }
  }

  private static let folder = "/run/netns"

  private static func path(_ namespace: String) -> String { "\(folder)/\(namespace)" }

  private static func ip(_ arguments: String...) throws {
    let outcome = try Tool.ip.run(arguments)
    guard outcome.status == 0 else {
      throw LoopbackError("ip \(arguments.joined(separator: " ")): \(outcome.errors)")
    }
  }
}
