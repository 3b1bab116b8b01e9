import CEpoll
import Foundation
import Glibc

/// Thousands of connections that read event streams, on one thread with one buffer, so that they use little of the
/// machine that the server also runs on. Counts how often each connection receives a marker text, and keeps nothing
/// else.
final class FeedClients {
  /// The text to count.
  private let marker: [UInt8]
  private let poll: Int32
  private var connections: [Int32] = []
  /// The number of markers per connection.
  private(set) var counts: [Int] = []
  /// The number of markers on all connections.
  private(set) var total = 0
  /// The last bytes of each connection, to find a marker that arrives in two pieces.
  private var tails: [UInt8] = []
  private var buffer = [UInt8](repeating: 0, count: 256 << 10)
  private var events = [epoll_event](repeating: epoll_event(), count: 1024)
  /// Called with the number of a connection and its received bytes.
  var onBytes: ((Int, ArraySlice<UInt8>) -> Void)?

  private var tailBytes: Int { marker.count - 1 }

  init(counting marker: String) throws {
    self.marker = Array(marker.utf8)
    poll = epoll_create1(0)
    guard poll >= 0 else {
      throw BenchmarkError("cannot create an epoll instance:  \(String(cString: strerror(errno)))")
    }
  }

  deinit {
    for connection in connections { close(connection) }
    close(poll)
  }

  var count: Int { connections.count }

  /// Opens connections one after another and sends a request on each. Reads responses as they arrive.
  /// - Throws: ``BenchmarkError`` if the server accepts no more connections.
  func open(_ count: Int, port: Int, request: (Int) throws -> String) throws {
    for _ in 0..<count {
      let number = connections.count
      let text = try request(number)
      guard let socket = LoadClient.connection(port: port) else {
        throw BenchmarkError("connection \(number + 1) was refused: \(String(cString: strerror(errno)))")
      }
      connections.append(socket)
      counts.append(0)
      tails += [UInt8](repeating: 0, count: tailBytes)
      var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(number)))
      guard epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event) == 0 else {
        throw BenchmarkError("cannot poll connection \(number + 1):  \(String(cString: strerror(errno)))")
      }
      try write(text, to: number)
      if number % 64 == 63 { try read(forMilliseconds: 0) }
    }
  }

  /// Sends bytes on a connection, which must take them immediately.
  func write(_ text: String, to number: Int) throws {
    var text = text
    let sent = text.withUTF8 { send(connections[number], $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard sent == text.utf8.count else { throw BenchmarkError("connection \(number + 1) does not accept the request") }
  }

  /// Resets the counts.
  func reset() {
    total = 0
    for number in counts.indices { counts[number] = 0 }
  }

  /// Reads until a condition holds. Returns the seconds this took.
  /// - Throws: ``BenchmarkError`` if the condition does not hold within the time.
  @discardableResult
  func read(withinSeconds limit: Double, until isEnough: () -> Bool) throws -> Double {
    let watch = Stopwatch()
    while !isEnough() {
      guard watch.seconds < limit else {
        let served = counts.reduce(0) { $0 + ($1 > 0 ? 1 : 0) }
        throw BenchmarkError("after \(limit) s only \(served) of \(count) listeners had been notified")
      }
      try read(forMilliseconds: 100)
    }
    return watch.seconds
  }

  /// Waits up to `milliseconds` for input, and reads all available bytes.
  func read(forMilliseconds milliseconds: Int) throws {
    let ready = epoll_wait(poll, &events, Int32(events.count), Int32(milliseconds))
    guard ready > 0 else { return }
    for index in 0..<Int(ready) { try receive(Int(events[index].data.u64)) }
  }

  private func receive(_ number: Int) throws {
    let tail = number * tailBytes
    for offset in 0..<tailBytes { buffer[offset] = tails[tail + offset] }
    let received = buffer.withUnsafeMutableBytes { bytes in
      recv(connections[number], bytes.baseAddress.map { $0 + tailBytes }, bytes.count - tailBytes, Int32(MSG_DONTWAIT))
    }
    guard received > 0 else {
      if received < 0, errno == EAGAIN || errno == EINTR { return }
      throw BenchmarkError("the server closed connection \(number + 1)")
    }
    let end = tailBytes + received
    let found = occurrences(in: end)
    counts[number] += found
    total += found
    for offset in 0..<tailBytes { tails[tail + offset] = buffer[end - tailBytes + offset] }
    onBytes?(number, buffer[tailBytes..<end])
  }

  private func occurrences(in end: Int) -> Int {
    var found = 0
    buffer.withUnsafeBytes { bytes in
      guard var place = bytes.baseAddress else { return }
      let last = place + end
      while let next = memmem(place, last - place, marker, marker.count) {
        found += 1
        place = UnsafeRawPointer(next) + marker.count
      }
    }
    return found
  }
}
