import FixtureTree
import WireFormat

/// Formats the values of traces for reports.
package enum ValueDisplay {
  /// The maximum length of a value, in characters. The rest is replaced by an ellipsis.
  package static let charactersMax = 100

  /// Returns the typed JSON of a trace as a short text: `"ann"`, `{"a": 1}`, `error: Null value error.`.
  package static func text(_ typed: String) -> String {
    guard let tree = try? JSONTree.read(ByteSource(Array(typed.utf8), name: "value"), bytesMax: .max) else {
      return shortened(typed)
    }
    return shortened(text(tree))
  }

  private static func shortened(_ text: String) -> String {
    text.count <= charactersMax ? text : "\(text.prefix(charactersMax - 1))…"
  }

  /// Returns a value as text. Recurses as deep as values nest, which the trace limits.
  private static func text(_ tree: JSONTree) -> String {
    guard case .object(let members) = tree.kind, let member = members.first else { return "" }
    let value = member.value
    func items(_ name: String) -> String { "[\(elements(value.member(name)).map(text).joined(separator: ", "))]" }
    switch member.name {
    case "nullValue": return "null"
    case "boolValue", "intValue", "floatValue": return scalar(value)
    case "stringValue": return quoted(scalar(value))
    case "bytesValue": return "bytes \(scalar(value))"
    case "timestampValue", "durationValue": return scalar(value)
    case "latlngValue":
      return "latlng(\(value.member("latitude").map(scalar) ?? "0"), \(value.member("longitude").map(scalar) ?? "0"))"
    case "listValue", "vectorValue": return items("values")
    case "setValue": return "set \(items("values"))"
    case "mapValue":
      guard case .object(let fields)? = value.member("fields")?.kind else { return "{}" }
      return "{\(fields.map { "\(quoted($0.name)): \(text($0.value))" }.joined(separator: ", "))}"
    case "mapDiffValue":
      guard case .object(let keys)? = value.member("keyStatuses")?.kind else { return "no difference" }
      return "{\(keys.map { "\(quoted($0.name)): \(scalar($0.value).lowercased())" }.joined(separator: ", "))}"
    case "pathValue": return elements(value.member("segments")).map { "/" + segment($0) }.joined()
    case "constraintValue": return "constrained by the query"
    case "undefined": return "error: \(value.member("causeMessage").map(scalar) ?? "")"
    default: return "…"
    }
  }

  private static func segment(_ tree: JSONTree) -> String {
    if let simple = tree.member("simple") { return scalar(simple) }
    let capture = tree.member("capture") ?? tree.member("globCapture")
    guard let bound = capture?.member("boundValue") else {
      return "{\(capture?.member("variableName").map(scalar) ?? "")}"
    }
    let segments = elements(bound.member("segments"))
    return segments.isEmpty ? scalar(bound) : segments.map(segment).joined(separator: "/")
  }

  private static func elements(_ tree: JSONTree?) -> [JSONTree] {
    guard case .array(let elements)? = tree?.kind else { return [] }
    return elements
  }

  private static func scalar(_ tree: JSONTree) -> String {
    switch tree.kind {
    case .null: "null"
    case .boolean(let flag): String(flag)
    case .number(let text), .string(let text): text
    case .array, .object: ""
    }
  }

  private static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
  }
}
