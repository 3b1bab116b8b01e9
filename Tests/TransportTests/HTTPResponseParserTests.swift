import Testing

@testable import Transport

/// Responses of servers, in one piece and byte by byte.
@Suite struct HTTPResponseParserTests {
  private func parse(
    _ text: String, pieceBytes: Int, isHead: Bool = false, bodyBytesMax: Int = 1000
  ) -> (HTTPResponseParser.Outcome, HTTPResponseParser) {
    let parser = HTTPResponseParser(isHead: isHead, bodyBytesMax: bodyBytesMax)
    var rest = Array(text.utf8)[...]
    var outcome = HTTPResponseParser.Outcome.incomplete
    while outcome == .incomplete {
      let piece = Array(rest.prefix(pieceBytes))
      outcome = parser.parse(piece, count: piece.count)
      if piece.isEmpty { break }
      rest = rest.dropFirst(piece.count)
    }
    return (outcome, parser)
  }

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, "ab", true),
      ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "", true),
      ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", 200, "abc", true),
      ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, "x", true),
      ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, "x", false),
      ("HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end", false),
    ], [1, 7, 10_000])
  func parsesResponses(answer: (text: String, status: Int, body: String, keepsAlive: Bool), pieceBytes: Int) {
    let (outcome, parser) = parse(answer.text, pieceBytes: pieceBytes)
    #expect(outcome == .complete)
    #expect(parser.status == answer.status)
    #expect(String(decoding: parser.body, as: UTF8.self) == answer.body)
    #expect(parser.keepsAlive == answer.keepsAlive)
  }

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", .incomplete),
      ("HTTP/1.1 200 OK\r\nContent-Le", .incomplete),
      ("", .incomplete),
      ("SSH-2.0-OpenSSH\r\n", .malformed),
      ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", .malformed),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .malformed),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "a", count: 1001), .tooLarge),
    ] as [(String, HTTPResponseParser.Outcome)], [1, 10_000])
  func rejectsIncompleteAndInvalidResponses(
    answer: (text: String, outcome: HTTPResponseParser.Outcome), pieceBytes: Int
  ) {
    #expect(parse(answer.text, pieceBytes: pieceBytes).0 == answer.outcome)
  }

  @Test func responsesToHeadHaveNoBody() {
    let (outcome, parser) = parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", pieceBytes: 9, isHead: true)
    #expect(outcome == .complete)
    #expect(parser.body.isEmpty)
  }
}
