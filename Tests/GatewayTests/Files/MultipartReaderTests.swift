import Files
import Testing
import TestSupport

@testable import StorageAPI

/// Multipart bodies of two parts, read in pieces of any length.
@Suite struct MultipartReaderTests {
  private static func reader() throws -> MultipartReader {
    try Array("multipart/related; boundary=b".utf8).withUnsafeBytes { try MultipartReader(contentType: $0) }
  }

  /// Reads a body in pieces of `step` bytes. Returns its content.
  private static func read(_ bytes: [UInt8], _ step: Int, _ reader: inout MultipartReader) throws -> [UInt8] {
    var content: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: step) {
      try bytes[start..<min(bytes.count, start + step)].withUnsafeBytes { piece in
        try reader.read(piece) { content.append(contentsOf: $0) }
      }
    }
    return content
  }

  @Test(arguments: [1, 2, 3, 5, 7, 1000])
  func pieceLengthDoesNotMatter(step: Int) throws {
    for metadata in ["", #"{"name": "x"}"#, "\r\n--a\r\n-"] {
      for content in ["", "hello", "\r\n--\r\n\r\n--a"] {
        let body =
          "--b\r\nContent-Type: application/json\r\n\r\n\(metadata)\r\n--b\r\nX: y\r\nContent-Type: a/b\r\n\r\n"
          + "\(content)\r\n--b--\r\n"
        var reader = try Self.reader()
        #expect(try Self.read(Array(body.utf8), step, &reader) == Array(content.utf8))
        #expect(reader.isWhole && reader.contentType == "a/b")
        #expect(reader.metadata == Array(metadata.utf8))
      }
    }
  }

  @Test func headInManyPiecesIsScannedOnce() throws {
    for head in ["", "--b\r\n", "--b\r\nContent-Type: a/b\r\n\r\n"] {
      var reader = try Self.reader()
      let bytes = Array(head.utf8) + [UInt8](repeating: 0x0D, count: 60 << 10)
      var content: [UInt8] = [0]
      let time = try threadTime { content = try Self.read(bytes, 1, &reader) }
      #expect(time < .seconds(2))
      #expect(content.isEmpty)
      #expect(reader.heldBytes >= 60 << 10)
      #expect(throws: FilesError.self) { _ = try Self.read(bytes, 1, &reader) }
    }
  }
}
