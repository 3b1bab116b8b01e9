package import RulesEngine
package import WireFormat

/// The source of a ruleset, in one file or several.
package struct RulesUpload: Sendable {
  package var files: [(name: String, content: String)] = []
  /// Whether rules that do not compile are accepted too, and then deny every request.
  package var ignoresErrors = false

  /// Creates the source of compiled rules, as one file.
  package init(of ruleset: Ruleset) {
    files = [(name: "", content: String(decoding: ruleset.source.bytes, as: UTF8.self))]
  }

  /// Reads the body of an upload. Returns `nil` if it is not one.
  package init?(_ root: JSONValue) {
    guard let files = root.member("rules")?.member("files"), case .array(var elements) = files.kind else { return nil }
    while let file = elements.next() {
      guard let content = file.member("content")?.text else { return nil }
      self.files.append((file.member("name")?.text ?? "", content))
    }
    if case .boolean(true) = root.member("ignore_errors")?.kind { ignoresErrors = true }
  }

  /// The concatenation of all files, separated by line breaks.
  package var text: String { files.map(\.content).joined(separator: "\n") }

  /// Appends `{"files": […]}`.
  package func append(to json: inout JSONWriter) {
    json.beginObject()
    json.key("files")
    json.beginArray()
    for file in files {
      json.beginObject()
      json.key("name")
      json.string(file.name)
      json.key("content")
      json.string(file.content)
      json.endObject()
    }
    json.endArray()
    json.endObject()
  }

  /// Appends a diagnostic. Its position in ``text`` is converted to a position in the file it belongs to.
  package func append(_ issue: Diagnostic, to json: inout JSONWriter) {
    var name = ""
    var offset = 0
    var line = 0
    for file in files {
      name = file.name
      let count = file.content.utf8.count
      if issue.range.lowerBound <= offset + count { break }
      offset += count + 1
      line += 1 + file.content.utf8.count { $0 == UInt8(ascii: "\n") }
    }
    json.beginObject()
    json.key("sourcePosition")
    json.beginObject()
    json.key("fileName")
    json.string(name)
    json.key("line")
    json.number(issue.line - line)
    json.key("column")
    json.number(issue.column)
    json.key("currentOffset")
    json.number(issue.range.lowerBound - offset)
    json.key("endOffset")
    json.number(max(issue.range.lowerBound, issue.range.upperBound - 1) - offset)
    json.endObject()
    json.key("description")
    json.string(issue.message)
    json.key("severity")
    json.string(issue.severity == .error ? "ERROR" : "WARNING")
    json.endObject()
  }
}

extension JSONValue {
  /// Returns a member of an object, or `nil` if it does not exist or the value is not an object.
  fileprivate func member(_ name: StaticString) -> JSONValue? {
    guard case .object(var members) = kind else { return nil }
    while let (found, value) = members.next() {
      if name ~= found { return value }
    }
    return nil
  }

  /// The text of a string value.
  fileprivate var text: String? {
    guard case .string(let bytes) = kind else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}
