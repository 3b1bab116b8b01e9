import Basics
import WireFormat

/// Formats values as plain text for messages, and as typed JSON for coverage reports.
enum RuleValueText {
  /// The greatest depth of a formatted value.
  private static let depthMax = 100
  /// The greatest size of a value's text, in bytes. The rest of longer lists and maps is replaced by a mark.
  private static let bytesMax = 64 << 10

  /// Returns a value as messages show it.
  static func plain(_ value: RuleValue) -> String {
    switch value {
    case .null: return "null"
    case .bool(let flag): return String(flag)
    case .int(let number): return String(number)
    case .float(let number):
      var out: [UInt8] = []
      FloatText.append(number, to: &out)
      return String(decoding: out, as: UTF8.self)
    case .string(let text): return String(decoding: text, as: UTF8.self)
    case .path(let segments): return segments.map { "/" + String(decoding: $0.text, as: UTF8.self) }.joined()
    default: return typedJSON(value)
    }
  }

  /// Returns a value as coverage reports show it: `{"intValue":"1"}`, `{"undefined":{"causeMessage":"…"}}`.
  ///
  /// Members that are created when they are read use the memory of `reader`.
  static func typedJSON(_ value: RuleValue, reader: Evaluator = Evaluator()) -> String {
    var writer = TypedJSON(reader: reader)
    writer.append(value, depth: 0)
    return String(decoding: writer.out, as: UTF8.self)
  }

  /// A writer of typed JSON.
  private struct TypedJSON {
    var out: [UInt8] = []
    let reader: Evaluator

    init(reader: Evaluator) {
      self.reader = reader
    }

    mutating func append(_ value: RuleValue, depth: Int) {
      guard depth < depthMax, out.count < bytesMax else { return out.append(contentsOf: "{\"truncated\":true}".utf8) }
      switch value {
      case .failure(let failure): member("undefined") { $0.object("causeMessage", failure.pointee.message) }
      case .null: member("nullValue") { $0.raw("null") }
      case .bool(let flag): member("boolValue") { $0.raw(String(flag)) }
      case .int(let number): member("intValue") { $0.quoted(String(number)) }
      case .float(let number): member("floatValue") { $0.number(number) }
      case .string(let text): member("stringValue") { $0.quoted(String(decoding: text, as: UTF8.self)) }
      case .bytes(let bytes): member("bytesValue") { $0.quoted(Base64.encode(Array(bytes))) }
      case .timestamp(let moment): member("timestampValue") { $0.quoted(timestamp(moment)) }
      case .duration(let moment): member("durationValue") { $0.quoted(duration(moment)) }
      case .latlng(let latitude, let longitude):
        // Zero coordinates are omitted, as in protobuf's JSON. Negative zero is not.
        member("latlngValue") { writer in
          writer.raw("{")
          for (name, degrees) in [("latitude", latitude), ("longitude", longitude)] where degrees.bitPattern != 0 {
            writer.raw("\(writer.out.last == UInt8(ascii: "{") ? "" : ",")\"\(name)\":")
            writer.number(degrees)
          }
          writer.raw("}")
        }
      case .path(let segments): path(segments)
      case .list, .encodedList: items("listValue", value, depth)
      case .set: items("setValue", value, depth)
      case .partialKeys(let known, let isSet):
        let keys = known.map { RuleValue.string($0.key) }
        keys.withUnsafeBufferPointer { items(isSet ? "setValue" : "listValue", .list($0), depth) }
      case .map, .encodedMap, .encodedFields, .object, .partialMap: map(value, depth)
      case .mapDiff(let pair): difference(pair)
      case .vector(let bytes): items("vectorValue", .encodedList(bytes), depth)
      case .constraint: member("constraintValue") { $0.raw("{}") }
      }
    }

    mutating func raw(_ text: String) { out.append(contentsOf: text.utf8) }

    private mutating func member(_ name: String, _ body: (inout TypedJSON) -> Void) {
      raw("{\"\(name)\":")
      body(&self)
      raw("}")
    }

    mutating func object(_ name: String, _ text: String) {
      raw("{\"\(name)\":")
      quoted(text)
      raw("}")
    }

    mutating func quoted(_ text: String) {
      out.append(UInt8(ascii: "\""))
      for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
        case 0x0A: raw("\\n")
        case 0x0D: raw("\\r")
        case 0x09: raw("\\t")
        case ..<0x20:
          let digits = Array("0123456789abcdef".utf8)
          raw("\\u00")
          out += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        default: out.append(byte)
        }
      }
      out.append(UInt8(ascii: "\""))
    }

    mutating func number(_ number: Double) {
      if number.isNaN || number.isInfinite {
        quoted(plain(.float(number)))
      } else {
        raw(plain(.float(number)))
      }
    }

    private mutating func items(_ name: String, _ list: RuleValue, _ depth: Int) {
      member(name) { writer in
        var cursor = ItemCursor(list, writer.reader)
        var isFirst = true
        while let item = cursor.next() {
          writer.raw(isFirst ? "{\"values\":[" : ",")
          isFirst = false
          writer.append(item, depth: depth + 1)
        }
        writer.raw(isFirst ? "{}" : "]}")
      }
    }

    private mutating func map(_ map: RuleValue, _ depth: Int) {
      member("mapValue") { writer in
        var isFirst = true
        for entry in writer.reader.entries(map) ?? UnsafeBufferPointer(start: nil, count: 0) {
          writer.raw(isFirst ? "{\"fields\":{" : ",")
          isFirst = false
          writer.quoted(String(decoding: entry.key, as: UTF8.self))
          writer.raw(":")
          writer.append(entry.value, depth: depth + 1)
        }
        writer.raw(isFirst ? "{}" : "}}")
      }
    }

    private mutating func path(_ segments: UnsafeBufferPointer<PathSegment>) {
      member("pathValue") { writer in
        if segments.isEmpty { return writer.raw("{}") }
        writer.raw("{\"segments\":[")
        for (index, segment) in segments.enumerated() {
          if segment.kind == .boundGlob, !segment.startsGlob { continue }
          if index > 0 { writer.raw(",") }
          let name = String(decoding: segment.name, as: UTF8.self)
          switch segment.kind {
          case .simple: writer.object("simple", String(decoding: segment.text, as: UTF8.self))
          case .capture: writer.member("capture") { $0.object("variableName", name) }
          case .globCapture: writer.member("globCapture") { $0.object("variableName", name) }
          case .boundCapture:
            writer.raw("{\"capture\":{\"variableName\":")
            writer.quoted(name)
            writer.raw(",\"boundValue\":")
            writer.quoted(String(decoding: segment.text, as: UTF8.self))
            writer.raw("}}")
          case .boundGlob:
            writer.raw("{\"globCapture\":{\"variableName\":")
            writer.quoted(name)
            writer.raw(",\"boundValue\":{\"segments\":[")
            var part = index
            repeat {
              if part > index { writer.raw(",") }
              writer.object("simple", String(decoding: segments[part].text, as: UTF8.self))
              part += 1
            } while part < segments.count && segments[part].kind == .boundGlob && !segments[part].startsGlob
            writer.raw("]}}}")
          }
        }
        writer.raw("]}")
      }
    }

    private mutating func difference(_ pair: UnsafePointer<RuleValue>) {
      member("mapDiffValue") { writer in
        var isFirst = true
        for (builtin, status) in [
          (Builtin.removedKeys, "REMOVED"), (.changedKeys, "CHANGED"), (.unchangedKeys, "UNCHANGED"),
          (.addedKeys, "ADDED"),
        ] {
          let keys = withUnsafeTemporaryAllocation(of: RuleValue.self, capacity: 1) { argument in
            argument.initialize(repeating: .mapDiff(pair))
            return writer.reader.callCollection(builtin, UnsafeBufferPointer(argument))
          }
          var cursor = ItemCursor(keys, writer.reader)
          while case .string(let key)? = cursor.next() {
            writer.raw(isFirst ? "{\"keyStatuses\":{" : ",")
            isFirst = false
            writer.quoted(String(decoding: key, as: UTF8.self))
            writer.raw(":\"\(status)\"")
          }
        }
        writer.raw(isFirst ? "{}" : "}}")
      }
    }
  }

  /// Returns RFC 3339 in UTC, with 0, 3, 6 or 9 fraction digits.
  private static func timestamp(_ moment: Moment) -> String {
    let (day, inDay) = CivilDate.split(Int(moment.seconds))
    let date = CivilDate(daysSince1970: day)
    func padded(_ number: Int, _ width: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, width - text.count)) + text
    }
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))"
      + "T\(padded(inDay / 3600, 2)):\(padded(inDay / 60 % 60, 2)):\(padded(inDay % 60, 2))\(fraction(moment.nanos))Z"
  }

  private static func duration(_ moment: Moment) -> String {
    let isNegative = moment.seconds < 0 || moment.nanos < 0
    return "\(isNegative ? "-" : "")\(moment.seconds.magnitude)\(fraction(abs(moment.nanos)))s"
  }

  private static func fraction(_ nanos: Int32) -> String {
    if nanos == 0 { return "" }
    let digits = String(String(Int(nanos) + 1_000_000_000).dropFirst())
    let width = nanos % 1_000_000 == 0 ? 3 : nanos % 1000 == 0 ? 6 : 9
    return "." + digits.prefix(width)
  }
}
