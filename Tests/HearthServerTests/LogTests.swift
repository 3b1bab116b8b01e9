import Foundation
import Glibc
import Testing

@testable import HearthServer

/// Lines of the log, and what becomes of them when nobody reads.
@Suite struct LogTests {
  private static func line(_ format: LogFormat, _ event: LogEvent) -> String {
    var bytes: [UInt8] = []
    format.append(event, at: 1_795_266_000_123_456, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static let event = LogEvent(
    .warn, "rules.refused", "two\nlines \"here\"",
    [("file", .text("a.rules")), ("path", .text("/x\u{1B}[31m\u{202E}y=z\r\n")), ("n", .integer(-3)), ("ms", .decimal(0.5))])

  @Test func formats() {
    #expect(Self.line(.plain, Self.event) == "hearth: two\nlines \"here\"\n")
    #expect(
      Self.line(.text, Self.event)
        == #"2026-11-21T13:00:00.123Z warn rules.refused file=a.rules path="/x\u{1b}[31m\u{202e}y=z\u{d}\n" n=-3 ms=0.5 "#
        + #"message="two\nlines \"here\"""# + "\n")
    #expect(
      Self.line(.json, Self.event)
        == #"{"time":"2026-11-21T13:00:00.123Z","level":"warn","event":"rules.refused","file":"a.rules","#
        + #""path":"/x\u001b[31m\u202ey=z\r\n","n":-3,"ms":0.5,"message":"two\nlines \"here\""}"# + "\n")
    // Without a message, people see the fields.
    let bare = LogEvent(.info, "request", "", [("path", .text("/a b\n"))])
    #expect(Self.line(.plain, bare) == "hearth: request path=\"/a b\\n\"\n")
  }

  @Test func writesInOrderAndByLevel() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    defer { close(ends[0]) }
    let log = LogWriter(descriptor: ends[1], format: .text, levelMin: .warn, now: { 0 })
    #expect(!log.takes(.info) && log.takes(.error))
    for n in 0..<100 { log.write(LogEvent(n % 2 == 0 ? .error : .info, "n", "", [("n", .integer(n))])) }
    log.flush()
    close(ends[1])
    let text = String(decoding: try FileHandle(fileDescriptor: ends[0]).readToEnd() ?? Data(), as: UTF8.self)
    let expected = stride(from: 0, to: 100, by: 2).map { "1970-01-01T00:00:00.000Z error n n=\($0)\n" }
    #expect(text == expected.joined())
  }

  /// A descriptor that nobody reads: writers go on, memory stays bounded, and what is lost is counted and told.
  @Test func dropsAndCountsWhereNobodyReads() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let log = LogWriter(descriptor: ends[1], format: .json, now: { 0 })
    let long = String(repeating: "x", count: 10_000)
    // The kernel takes some hundred KiB, the log one MiB beside what it is writing.
    for _ in 0..<600 { log.write(LogEvent(.info, "long", long)) }
    #expect(log.droppedLines > 200)
    let dropped = log.droppedLines
    let reader = FileHandle(fileDescriptor: ends[0])
    var lines: [Substring] = []
    var text = ""
    while !text.contains("log.dropped") {
      text += String(decoding: reader.availableData, as: UTF8.self)
      lines = text.split(separator: "\n")
    }
    log.flush()
    close(ends[1])
    close(ends[0])
    #expect(lines.last?.contains("\"lines\":\(dropped)") == true, "\(lines.last ?? "")")
    #expect(lines.count == 600 - dropped + 1)
  }
}
