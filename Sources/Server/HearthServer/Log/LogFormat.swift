import Glibc
import WireFormat

/// The formats of log lines.
public enum LogFormat: String, Sendable, CaseIterable {
  /// `hearth: MESSAGE`, for people at a terminal. A message may have several lines, but text from clients is on one
  /// line.
  case plain
  /// `2026-11-21T13:00:00.123Z warn rules.refused file=a.rules message="…"`, one line per event.
  case text
  /// One JSON object per event, with `time`, `level`, `event`, `message` and the fields.
  case json

  /// Appends an event, with a line feed. `microseconds` is the time since 1970.
  func append(_ event: LogEvent, at microseconds: Int64, to bytes: inout [UInt8]) {
    switch self {
    case .plain: appendPlain(event, to: &bytes)
    case .text: appendText(event, at: microseconds, to: &bytes)
    case .json: appendJSON(event, at: microseconds, to: &bytes)
    }
    bytes.append(UInt8(ascii: "\n"))
  }

  private func appendPlain(_ event: LogEvent, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "hearth: ".utf8)
    guard event.message.isEmpty else { return bytes.append(contentsOf: event.message.utf8) }
    bytes.append(contentsOf: "\(event.name)".utf8)
    Self.append(event.fields, to: &bytes)
  }

  private func appendText(_ event: LogEvent, at microseconds: Int64, to bytes: inout [UInt8]) {
    Self.append(time: microseconds, to: &bytes)
    bytes.append(contentsOf: " \(event.level) \(event.name)".utf8)
    Self.append(event.fields, to: &bytes)
    guard !event.message.isEmpty else { return }
    bytes.append(contentsOf: " message=".utf8)
    Self.append(quoted: event.message, to: &bytes)
  }

  private func appendJSON(_ event: LogEvent, at microseconds: Int64, to bytes: inout [UInt8]) {
    var json = JSONWriter(.compact, bytes: bytes)
    // Non-ASCII characters could disguise text on a terminal.
    json.escapesNonASCII = true
    json.beginObject()
    var time: [UInt8] = []
    Self.append(time: microseconds, to: &time)
    json.key("time")
    json.string(String(decoding: time, as: UTF8.self))
    json.key("level")
    json.string("\(event.level)")
    json.key("event")
    json.string("\(event.name)")
    for field in event.fields {
      json.key(field.name)
      switch field.value {
      case .text(let text): json.string(text)
      case .integer(let number): json.number(number)
      case .decimal(let number): json.double(number)
      }
    }
    if !event.message.isEmpty {
      json.key("message")
      json.string(event.message)
    }
    json.endObject()
    bytes = json.bytes
  }

  private static func append(_ fields: [LogEvent.Field], to bytes: inout [UInt8]) {
    for field in fields {
      bytes.append(contentsOf: " \(field.name)=".utf8)
      switch field.value {
      case .text(let text): append(quoted: text, to: &bytes)
      case .integer(let number): bytes.append(contentsOf: String(number).utf8)
      case .decimal(let number): bytes.append(contentsOf: "\(number)".utf8)
      }
    }
  }

  /// Appends a text, in quotes unless it is one plain word. No text can end a line or control a terminal.
  private static func append(quoted text: String, to bytes: inout [UInt8]) {
    let isPlain =
      !text.isEmpty
      && text.utf8.allSatisfy { byte in
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
          && byte != UInt8(ascii: "\\")
      }
    if isPlain { return bytes.append(contentsOf: text.utf8) }
    bytes.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": bytes.append(contentsOf: #"\""#.utf8)
      case "\\": bytes.append(contentsOf: #"\\"#.utf8)
      case "\n": bytes.append(contentsOf: #"\n"#.utf8)
      default:
        let isShown = scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        if (0x20...0x7E).contains(scalar.value) || scalar.value > 0xA0 && isShown {
          bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        } else {
          bytes.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".utf8)
        }
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends a UTC time with milliseconds.
  private static func append(time microseconds: Int64, to bytes: inout [UInt8]) {
    var seconds = time_t(microseconds / 1_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ number: Int, _ count: Int) {
      let text = String(number)
      bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: max(0, count - text.utf8.count)))
      bytes.append(contentsOf: text.utf8)
    }
    let pieces = [
      (Int(parts.tm_year) + 1900, 4, "-"), (Int(parts.tm_mon) + 1, 2, "-"), (Int(parts.tm_mday), 2, "T"),
      (Int(parts.tm_hour), 2, ":"), (Int(parts.tm_min), 2, ":"), (Int(parts.tm_sec), 2, "."),
      (Int(microseconds / 1000 % 1000), 3, "Z"),
    ]
    for (number, count, end) in pieces {
      digits(number, count)
      bytes.append(contentsOf: end.utf8)
    }
  }
}
