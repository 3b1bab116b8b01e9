import Testing
import TestSupport

/// Reads the chunks of a back channel as they arrive, on a connection of its own.
final class ChunkReader {
  private let response: StreamedResponse

  /// The status line and the headers.
  var head: String { response.head }
  var status: Int { response.status }

  /// Sends a GET and waits for the head of the response.
  init(port: UInt16, target: String) throws {
    let request = "GET \(target) HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page.test\r\n\r\n"
    response = try StreamedResponse(port: port, request: Array(request.utf8))
    try response.readHead()
  }

  /// The rest of the body as text.
  var text: String {
    try? response.readToEnd()
    return String(decoding: response.body, as: UTF8.self)
  }

  /// The text of the next chunk, whose length is checked, or `nil` if the response ends.
  func next() throws -> String? {
    while true {
      if let line = response.body.firstIndex(of: 0x0A) {
        let count = try #require(Int(String(decoding: response.body[..<line], as: UTF8.self)), "no length")
        if response.body.count > line + count {
          return String(decoding: response.take(line + 1 + count)[(line + 1)...], as: UTF8.self)
        }
      }
      guard !response.isComplete else {
        #expect(response.body.isEmpty, "the response was truncated")
        return nil
      }
      try response.receive()
    }
  }
}
