import Foundation
import Glibc
import Testing

@testable import HearthServer

/// The formats of log lines, and the behavior without a reader.
@Suite struct LogTests {
  private static func line(_ format: LogFormat, _ event: LogEvent) -> String {
    var bytes: [UInt8] = []
    format.append(event, at: 1_795_266_000_123_456, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static let event = LogEvent(
    .warn, "rules.refused", "two\nlines \"here\"",
    [
      ("file", .text("a.rules")), ("path", .text("/x\u{1B}[31m\u{202E}y=z\r\n")), ("n", .integer(-3)),
      ("ms", .decimal(0.5)),
    ])

  @Test func writesEveryFormat() {
    #expect(Self.line(.plain, Self.event) == "hearth: two\nlines \"here\"\n")
    #expect(
      Self.line(.text, Self.event)
        == #"2026-11-21T13:00:00.123Z warn rules.refused file=a.rules path="/x\u{1b}[31m\u{202e}y=z\u{d}\n" n=-3 ms=0.5 "#
        + #"message="two\nlines \"here\"""# + "\n")
    #expect(
      Self.line(.json, Self.event)
        == #"{"time":"2026-11-21T13:00:00.123Z","level":"warn","event":"rules.refused","file":"a.rules","#
        + #""path":"/x\u001b[31m\u202ey=z\r\n","n":-3,"ms":0.5,"message":"two\nlines \"here\""}"# + "\n")
    // A plain line without a message shows the fields.
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
    log.flush(timeoutMilliseconds: 30_000)
    close(ends[1])
    let text = String(decoding: try FileHandle(fileDescriptor: ends[0]).readToEnd() ?? Data(), as: UTF8.self)
    let expected = stride(from: 0, to: 100, by: 2).map { "1970-01-01T00:00:00.000Z error n n=\($0)\n" }
    #expect(text == expected.joined())
  }

  /// Without a reader, writers do not wait, memory stays bounded, and dropped lines are counted and reported.
  @Test func dropsAndCountsLinesWithoutAReader() throws {
    var ends: [Int32] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    // Some systems let a socket buffer megabytes.
    var bytes: Int32 = 128 << 10
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    let log = LogWriter(descriptor: ends[1], format: .json, now: { 0 })
    let long = String(repeating: "x", count: 10_000)
    // The kernel buffers a few hundred KiB, and the log one MiB besides the batch that it is writing.
    for _ in 0..<600 { log.write(LogEvent(.info, "long", long)) }
    #expect(log.droppedLines > 200)
    let dropped = log.droppedLines
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var (lines, reports, reported) = (0, 0, 0)
    var rest = ""
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    // The log reports dropped lines as soon as there is room, so a slow log thread may report several times.
    while reported < dropped || lines < 600 - dropped + reports {
      let count = recv(ends[0], &buffer, buffer.count, 0)
      try #require(count > 0, "\(lines) lines, \(reported) of \(dropped) reported")
      rest += String(decoding: buffer[..<count], as: UTF8.self)
      let whole = rest.split(separator: "\n", omittingEmptySubsequences: false)
      for line in whole.dropLast() {
        lines += 1
        guard line.contains("log.dropped") else { continue }
        reports += 1
        reported += try #require(line.firstMatch(of: /"lines":(\d+)/).flatMap { Int($0.1) }, "\(line)")
      }
      rest = String(whole.last ?? "")
    }
    log.flush(timeoutMilliseconds: 30_000)
    close(ends[1])
    close(ends[0])
    #expect(reported == dropped)
    #expect(rest == "" && lines == 600 - dropped + reports)
  }
}
