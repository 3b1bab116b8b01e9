import CHTTPParser
import Testing
import TestSupport

@testable import Transport

/// Heads that are read in one pass, compared with http-parser, which reads the same bytes if they come in pieces.
@Suite struct PlainHeadTests {
  private static func head(_ lines: String...) -> [UInt8] {
    Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  private static let usual =
    head(
      "POST /v1/projects/p/databases/(default)/documents:runQuery?prettyPrint=false&mask.fieldPaths=a%20b HTTP/1.1",
      "Host: 127.0.0.1:8080", "Content-Type: application/json; charset=utf-8", "X-Custom_1:  two words ",
      "Content-Length: 3", "Accept-Encoding: gzip, deflate") + Array("abc".utf8)

  private static func read(_ head: [UInt8], fieldsMax: Int = 16) -> (PlainHead.Parts, [String])? {
    withUnsafeTemporaryAllocation(of: HeaderField.self, capacity: fieldsMax) { fields in
      head.withUnsafeBytes { message in
        PlainHead.read(message, fields: fields).map { parts in
          let texts = fields[..<parts.fieldCount].map { field in
            let name = message[Int(field.nameStart)..<Int(field.nameStart + field.nameCount)]
            let value = message[Int(field.valueStart)..<Int(field.valueStart + field.valueCount)]
            return "\(String(decoding: name, as: UTF8.self))=\(String(decoding: value, as: UTF8.self))"
          }
          return (parts, texts)
        }
      }
    }
  }

  @Test func usualHeadsAreRead() throws {
    let (parts, fields) = try #require(Self.read(Self.usual))
    #expect(parts.method == HTTP_POST && parts.contentLength == 3 && parts.byteCount == Self.usual.count - 3)
    #expect(Self.usual[parts.target].starts(with: "/v1/projects/p/".utf8) && Self.usual[parts.target].last == 0x62)
    #expect(
      fields == [
        "Host=127.0.0.1:8080", "Content-Type=application/json; charset=utf-8", "X-Custom_1=two words ",
        "Content-Length=3", "Accept-Encoding=gzip, deflate",
      ])
    for (method, value) in [("GET", HTTP_GET), ("PUT", HTTP_PUT), ("PATCH", HTTP_PATCH), ("DELETE", HTTP_DELETE)] {
      #expect(Self.read(Self.head("\(method) / HTTP/1.1", "Host: x"))?.0.method == value)
    }
  }

  @Test func otherHeadsAreLeftToTheLibrary() {
    let heads = [
      Self.head("GET / HTTP/1.0", "Host: x"), Self.head("OPTIONS * HTTP/1.1", "Host: x"),
      Self.head("get / HTTP/1.1", "Host: x"), Self.head("GET http://x/ HTTP/1.1", "Host: x"),
      Self.head("GET /# HTTP/1.1", "Host: x"), Self.head("GET /\u{e4} HTTP/1.1", "Host: x"),
      Self.head("GET / HTTP/1.1", "Host: x", "Connection: close"),
      Self.head("GET / HTTP/1.1", "Host: x", "UPGRADE: h2c"),
      Self.head("POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"),
      Self.head("POST / HTTP/1.1", "Host: x", "proxy-connection: close"),
      Self.head("POST / HTTP/1.1", "Host: x", "Content-Length: 1", "content-length: 1"),
      Self.head("POST / HTTP/1.1", "Host: x", "Content-Length: +1"),
      Self.head("POST / HTTP/1.1", "Host: x", "Content-Length: 1234567890123456789"),
      Self.head("GET / HTTP/1.1", "Host : x"), Self.head("GET / HTTP/1.1", "Host:"),
      Self.head("GET / HTTP/1.1", "A: b", " c"), Self.head("GET / HTTP/1.1", "A: \u{e4}"),
      Self.head("GET / HTTP/1.1", "A: b\tc"), Array("\r\nGET / HTTP/1.1\r\n\r\n".utf8),
      Array("GET / HTTP/1.1\n\n".utf8),
    ]
    for head in heads { #expect(Self.read(head) == nil, "\(String(decoding: head, as: UTF8.self))") }
    #expect(Self.read(Self.usual, fieldsMax: 4) == nil)
    for count in 0..<(Self.usual.count - 3) { #expect(Self.read(Array(Self.usual[..<count])) == nil) }
  }

  /// Each byte is replaced, removed or doubled.
  @Test func changedHeadsAreReadAsByTheLibrary() {
    let bytes: [UInt8] = [
      0x00, 0x09, 0x0a, 0x0b, 0x0d, 0x20, 0x22, 0x23, 0x2b, 0x2c, 0x2f, 0x30, 0x3a, 0x3f, 0x41, 0x5b, 0x61, 0x7b, 0x7e,
      0x7f, 0x80, 0xff,
    ]
    func check(_ head: [UInt8]) {
      ([UInt8(0)] + head + Self.usual).withUnsafeBytes { HTTPFuzz.run($0) }
    }
    check([])
    for place in Self.usual.indices {
      var removed = Self.usual
      removed.remove(at: place)
      check(removed)
      for byte in bytes {
        var changed = Self.usual
        changed[place] = byte
        check(changed)
        changed.insert(Self.usual[place], at: place)
        check(changed)
      }
    }
  }
}
