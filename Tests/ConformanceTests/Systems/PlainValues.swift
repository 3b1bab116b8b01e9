import Foundation
import TestSupport

// Converts between the fields of a fixture tree and those of the API, so that scenarios can use the short form.

/// The timestamp at `text`, such as `2025-03-27T14:30:00Z`.
func at(_ text: String) -> JSONNode { ["$timestamp": .string(text)] }

/// The timestamp `seconds` from now, by this machine's clock.
func fromNow(_ seconds: Double) -> JSONNode {
  at(Date(timeIntervalSinceNow: seconds).formatted(.iso8601))
}

/// A reference to a document.
func reference(_ path: String) -> JSONNode { ["$ref": .string(path)] }

extension JSONNode {
  /// The value in the form of the API: `12` becomes `{"integerValue": "12"}`.
  func typed(in database: TestDatabase) -> JSONNode {
    switch self {
    case .null: ["nullValue": .null]
    case .bool: ["booleanValue": self]
    case .number(let text):
      text.contains { ".eE".contains($0) } ? ["doubleValue": self] : ["integerValue": .string(text)]
    case .string: ["stringValue": self]
    case .array(let elements): ["arrayValue": ["values": .array(elements.map { $0.typed(in: database) })]]
    case .object(let members):
      if let time = self["$timestamp"] {
        ["timestampValue": time]
      } else if let path = self["$ref"]?.stringValue {
        ["referenceValue": .string(database.name(path))]
      } else {
        ["mapValue": ["fields": .object(members.map { Member($0.name, $0.value.typed(in: database)) })]]
      }
    }
  }

  /// The fields in the form of the API.
  func typedFields(in database: TestDatabase) -> JSONNode {
    .object(members.map { Member($0.name, $0.value.typed(in: database)) })
  }

  /// A value of the API in plain form. Doubles keep a fraction, so that `3.0` differs from `3`.
  var plain: JSONNode {
    guard let member = members.first else { return self }
    switch member.name {
    case "integerValue": return .number(member.value.stringValue ?? "")
    case "doubleValue":
      guard case .number(let text) = member.value, !text.contains(where: { ".eE".contains($0) }) else {
        return member.value
      }
      return .number(text + ".0")
    case "timestampValue": return ["$timestamp": member.value]
    case "referenceValue":
      let path = member.value.stringValue?.split(separator: "/").dropFirst(5).joined(separator: "/")
      return ["$ref": .string(path ?? "")]
    case "arrayValue": return .array(member.value["values"]?.elements.map(\.plain) ?? [])
    case "mapValue": return member.value["fields"]?.plainFields ?? [:]
    case "nullValue": return .null
    default: return member.value
    }
  }

  /// The fields of a document in plain form.
  var plainFields: JSONNode { .object(members.map { Member($0.name, $0.value.plain) }) }

  /// The value of a plain or typed number.
  var number: Double? {
    if case .number(let text) = plain { Double(text) } else { nil }
  }
}
