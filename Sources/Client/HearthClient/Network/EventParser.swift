import Foundation

/// Splits a stream of server-sent events into their JSON messages.
struct EventParser {
  /// The maximum size of an event, in bytes. The largest document needs much less.
  static let eventBytesMax = 64 << 20

  private var line: [UInt8] = []
  private var event: [UInt8] = []

  /// Parses the next bytes and returns the events that are complete.
  /// - Throws: ``HearthClientError`` if an event is not valid JSON or too long.
  mutating func take(_ data: Data) throws -> [JSON] {
    var events: [JSON] = []
    for byte in data {
      guard byte == UInt8(ascii: "\n") else {
        if byte != UInt8(ascii: "\r") { line.append(byte) }
        continue
      }
      if line.isEmpty {
        if !event.isEmpty { events.append(try JSON(parsing: event)) }
        event.removeAll(keepingCapacity: true)
      } else if line.starts(with: "data:".utf8) {
        event.append(contentsOf: line.dropFirst(5))
      }
      line.removeAll(keepingCapacity: true)
    }
    guard line.count + event.count <= Self.eventBytesMax else {
      throw HearthClientError.unreadable("an event is longer than \(Self.eventBytesMax) bytes")
    }
    return events
  }
}
