import TestSupport

/// Converts a response to the form that two servers must agree on.
///
/// - Creation and update times become ordinals: the first time seen for a document is 0, the next 1, and so on.
///   Servers agree if the same times are equal.
/// - Times that a transform wrote become one word, because the emulator truncates them to milliseconds.
/// - Read times and page tokens are checked for their form and dropped. Commit times become "present".
/// - Errors keep their code. Messages differ between the emulator and production.
/// - Doubles are compared as numbers, zeros without their sign: the emulator's JSON has no -0.
/// - The documents of a batchGet have no particular order.
struct Normalizer {
  private var timesSeen: [[UInt8]: [Timestamp]] = [:]

  mutating func normalize(_ json: JSONNode?, status: Int, step: Step) -> JSONNode {
    guard let json else { return .object([.init("text", .bool(true))]) }
    if status >= 400 { return error(json) }
    if step.target.hasSuffix(":batchGet") { return batchGet(json) }
    if json["name"] != nil { return document(json) }
    return .object(
      json.members.compactMap { member in
        switch member.name {
        case "documents": .init("documents", .array(member.value.elements.map { document($0) }))
        case "writeResults": .init("writeResults", writeResults(member.value, step: step, commit: json["commitTime"]))
        case "status": .init("status", .array(member.value.elements.map { $0["code"] ?? 0 }))
        case "commitTime": .init("commitTime", Timestamp(member.value) == nil ? member.value : "time")
        case "transaction": .init("transaction", .bool(member.value.stringValue?.isEmpty == false))
        // Servers may report the last page sooner or later.
        case "nextPageToken": nil
        default: .init(member.name, value(member.value))
        }
      })
  }

  /// Streaming methods wrap errors in an array in production, but not in the emulator.
  private func error(_ json: JSONNode) -> JSONNode {
    let error = json["error"] ?? json.elements.first?["error"]
    return .object([
      .init("error", error?["status"] ?? .null), .init("code", error?["code"] ?? .null),
    ])
  }

  private mutating func batchGet(_ json: JSONNode) -> JSONNode {
    var results: [(key: [UInt8], value: JSONNode)] = []
    for element in json.elements {
      let name = element["found"]?["name"]?.stringValue ?? element["missing"]?.stringValue ?? ""
      let members = element.members.compactMap { member -> JSONNode.Member? in
        switch member.name {
        case "found": .init("found", document(member.value, readTime: element["readTime"]))
        case "missing": member
        case "transaction": .init("transaction", .bool(member.value.stringValue?.isEmpty == false))
        case "readTime": .init("readTime", Timestamp(member.value) == nil ? member.value : "time")
        default: member
        }
      }
      results.append((Array(name.utf8), .object(members)))
    }
    results.sort { $0.key.lexicographicallyPrecedes($1.key) }
    return .array(results.map(\.value))
  }

  private mutating func document(_ json: JSONNode, readTime: JSONNode? = nil) -> JSONNode {
    let name = json["name"]?.stringValue ?? ""
    let created = json["createTime"].flatMap { Timestamp($0) }
    let updated = json["updateTime"].flatMap { Timestamp($0) }
    var members = json.members.compactMap { member -> JSONNode.Member? in
      switch member.name {
      case "name": member
      case "createTime": .init("createTime", ordinal(of: created, name: name))
      // The emulator includes the deletion time of a missing document.
      case "updateTime" where created == nil: nil
      case "updateTime": .init("updateTime", ordinal(of: updated, name: name))
      default: .init(member.name, value(member.value))
      }
    }
    if let created, let updated, created > updated { members.append(.init("updated before created", .bool(true))) }
    if let updated, let read = readTime.flatMap({ Timestamp($0) }), updated > read {
      members.append(.init("updated after read", .bool(true)))
    }
    return .object(members)
  }

  private mutating func writeResults(_ json: JSONNode, step: Step, commit: JSONNode?) -> JSONNode {
    let commitTime = commit.flatMap { Timestamp($0) }
    return .array(
      json.elements.enumerated().map { index, result in
        let name = index < step.written.count ? step.written[index] : nil
        return .object(
          result.members.compactMap { member in
            guard member.name == "updateTime" else { return .init(member.name, value(member.value)) }
            guard let name else { return nil }
            let time = Timestamp(member.value)
            let isNow: JSONNode = commitTime == nil ? .null : .bool(time == commitTime)
            return .init("updateTime", [ordinal(of: time, name: name), isNow])
          })
      })
  }

  private mutating func ordinal(of time: Timestamp?, name: String) -> JSONNode {
    guard let time else { return "not a time" }
    let key = Array(name.utf8)
    var times = timesSeen[key] ?? []
    let position = times.firstIndex(of: time) ?? times.endIndex
    if position == times.endIndex { times.append(time) }
    timesSeen[key] = times
    return .number(String(position))
  }

  /// A value, a map of values, or another part of a document.
  private func value(_ json: JSONNode) -> JSONNode {
    switch json {
    case .number(let text):
      guard let number = Double(text) else { return json }
      return .number(number == 0 ? "0.0" : "\(number)")
    case .array(let elements): return .array(elements.map(value))
    case .object(let members):
      return .object(
        members.map { member in
          if member.name == "timestampValue", let time = Timestamp(member.value), time.isRecent {
            return .init(member.name, "time of a transform")
          }
          return .init(member.name, value(member.value))
        })
    default: return json
    }
  }
}

/// A time in a response, in microseconds since 1970.
struct Timestamp: Comparable {
  let microseconds: Int

  /// Parses the form that servers write: UTC, with no, three or six digits of a fraction.
  init?(_ json: JSONNode) {
    guard let text = json.stringValue else { return nil }
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes[10] == UInt8(ascii: "T"), bytes.last == UInt8(ascii: "Z") else { return nil }
    func number(_ range: Range<Int>) -> Int? { Int(String(decoding: bytes[range], as: UTF8.self)) }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
      let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19)
    else { return nil }
    var fraction = 0
    switch bytes.count {
    case 20: break
    case 24: fraction = (number(20..<23) ?? 0) * 1000
    case 27: fraction = number(20..<26) ?? 0
    default: return nil
    }
    // The days since 1970 in the proleptic Gregorian calendar, by eras of 400 years that begin in March.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let days = era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719468
    microseconds = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction
  }

  /// Whether only the clock of a running server can produce the time: generated times are before 2026 or after 2100.
  var isRecent: Bool { (1_767_225_600_000_000..<4_102_444_800_000_000).contains(microseconds) }

  static func < (left: Timestamp, right: Timestamp) -> Bool { left.microseconds < right.microseconds }
}
