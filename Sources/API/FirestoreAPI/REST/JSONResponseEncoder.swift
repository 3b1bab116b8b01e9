import DatabaseService
import GatewayCore
import WireFormat

/// Encodes a streamed response as a JSON array with one element per message (firestore-api.md, section 1.3).
struct JSONResponseEncoder: ResponseEncoder {
  private var json: JSONWriter

  init(_ style: JSONWriter.Style) { json = JSONWriter(style) }

  var byteCount: Int { json.bytes.count }

  mutating func begin() {
    // Space for some twenty documents, so that a short response does not grow step by step.
    json.bytes.reserveCapacity(Self.firstBytes)
    json.beginArray()
  }

  private static let firstBytes = 8 * 1024

  mutating func append(_ message: some EncodableMessage) throws {
    json.beginObject()
    try message.append(to: &json)
    json.endObject()
  }

  /// Writes a line break, which JSON allows between elements.
  mutating func idle() { json.bytes.append(UInt8(ascii: "\n")) }

  mutating func end() { json.endArray() }

  /// Writes the error as the last element, because the HTTP status was already sent.
  mutating func fail(_ status: Status) {
    ErrorJSON.append(status, httpStatus: ErrorJSON.httpStatus(status.code), to: &json)
    json.endArray()
  }

  mutating func take(into out: inout [UInt8]) {
    if out.isEmpty {
      swap(&out, &json.bytes)
    } else {
      out.append(contentsOf: json.take())
    }
  }
}
