import CHTTPParser
import Glibc

/// Writes status lines and the `Date` of replies. One for each loop: the text for 200, and the date, are kept ready.
final class ReplyHead {
  private var second = time_t.min
  private var dateLine: [UInt8] = []
  private var okLines: [UInt8] = []

  /// Appends the status line and the date, as of the current second.
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

  /// Appends the date alone, as of the current second.
  func appendDate(to out: inout [UInt8]) {
    let now = time(nil)
    if now != second { refresh(now) }
    out.append(contentsOf: dateLine)
  }

  private func refresh(_ now: time_t) {
    second = now
    var now = now
    var parts = tm()
    gmtime_r(&now, &parts)
    // strftime would follow the process's locale; the names are fixed by the protocol.
    let days: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months: [StaticString] = [
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    var line: [UInt8] = []
    line.append("Date: ")
    line.append(days[Int(parts.tm_wday)])
    line.append(", ")
    line.append(padded: Int(parts.tm_mday), width: 2)
    line.append(" ")
    line.append(months[Int(parts.tm_mon)])
    line.append(" ")
    line.append(padded: Int(parts.tm_year) + 1900, width: 4)
    line.append(" ")
    line.append(padded: Int(parts.tm_hour), width: 2)
    line.append(":")
    line.append(padded: Int(parts.tm_min), width: 2)
    line.append(":")
    line.append(padded: Int(parts.tm_sec), width: 2)
    line.append(" GMT\r\n")
    dateLine = line
    okLines = []
    okLines.append("HTTP/1.1 200 OK\r\n")
    okLines.append(contentsOf: line)
  }
}

extension [UInt8] {
  fileprivate mutating func append(padded value: Int, width: Int) {
    let start = count
    append(contentsOf: repeatElement(0x20, count: width))
    writeDecimal(value, at: start, width: width)
    for index in start..<count where self[index] == 0x20 { self[index] = 0x30 }
  }

  /// Appends the standard reason phrase; for other codes, nothing.
  fileprivate mutating func append(reason status: Int) {
    guard (100...599).contains(status), let text = http_status_str(http_status(UInt32(status))), text[0] != 0x3c
    else { return }
    text.withMemoryRebound(to: UInt8.self, capacity: strlen(text)) {
      append(contentsOf: UnsafeBufferPointer(start: $0, count: strlen(text)))
    }
  }
}
