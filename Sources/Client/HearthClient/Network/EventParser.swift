import Foundation

/// Cuts a stream of server-sent events into the JSON that they carry.
struct EventParser {
  /// The longest event, in bytes; a document of the largest kind stays far below.
  static let eventBytesMax = 64 << 20

  private var line: [UInt8] = []
  private var event: [UInt8] = []

  /// Takes what arrived and returns the events that are whole now.
  /// - Throws: ``HearthClientError`` for what is no JSON, or too long.
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
    guard line.count + event.count <= Self.eventBytesMax else { throw HearthClientError.unreadable("an endless event") }
    return events
  }
}
