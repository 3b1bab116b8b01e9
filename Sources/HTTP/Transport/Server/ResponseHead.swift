import CHTTPParser
import Glibc

/// Writes status lines and `Date` fields. Each loop has one, which caches the head of a 200 response and the date.
final class ResponseHead {
  private var second = time_t.min
  private var dateLine: [UInt8] = []
  private var okLines: [UInt8] = []

  /// Appends the status line and the current date.
  func append(status: Int, to out: inout [UInt8]) {
    let now = time(nil)
    if now != second { refresh(now) }
    if status == 200 {
      out.append(contentsOf: okLines)
      return
    }
    out.append("HTTP/1.1 ")
    let start = out.count
    out.append("    ")
    out.writeDecimal(min(max(status, 100), 999), at: start, width: 3)
    out.append(reason: status)
    out.append("\r\n")
    out.append(contentsOf: dateLine)
  }

  /// Appends the current date alone.
  func appendDate(to out: inout [UInt8]) {
    let now = time(nil)
    if now != second { refresh(now) }
    out.append(contentsOf: dateLine)
  }

  private func refresh(_ now: time_t) {
    second = now
    dateLine = Array("Date: \(HTTPDate.text(Int64(now)))\r\n".utf8)
    okLines = []
    okLines.append("HTTP/1.1 200 OK\r\n")
    okLines.append(contentsOf: dateLine)
  }
}

extension [UInt8] {
  /// Appends the standard reason phrase. Appends nothing for an unknown code.
  fileprivate mutating func append(reason status: Int) {
    guard (100...599).contains(status), let text = http_status_str(http_status(UInt32(status))), text[0] != 0x3c
    else { return }
    text.withMemoryRebound(to: UInt8.self, capacity: strlen(text)) {
      append(contentsOf: UnsafeBufferPointer(start: $0, count: strlen(text)))
    }
  }
}
