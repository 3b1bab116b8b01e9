import Foundation
import Testing

/// Parts of pipelines in JSON.
enum Pipe {
  /// The body of a request with these stages.
  static func body(_ stages: [String], options: String = "{}", more: String = "") -> String {
    """
    {"structuredPipeline": {"pipeline": {"stages": [\(stages.joined(separator: ","))]}, "options": \(options)}\(more)}
    """
  }

  static func stage(_ name: String, _ arguments: String..., options: String = "{}") -> String {
    #"{"name": "\#(name)", "args": [\#(arguments.joined(separator: ","))], "options": \#(options)}"#
  }

  static func call(_ name: String, _ arguments: String...) -> String {
    #"{"functionValue": {"name": "\#(name)", "args": [\#(arguments.joined(separator: ","))]}}"#
  }

  static func field(_ path: String) -> String { #"{"fieldReferenceValue": "\#(path)"}"# }
  static func variable(_ name: String) -> String { #"{"variableReferenceValue": "\#(name)"}"# }
  static func int(_ number: Int) -> String { #"{"integerValue": "\#(number)"}"# }
  static func double(_ number: Double) -> String { #"{"doubleValue": \#(number)}"# }
  static func text(_ text: String) -> String { #"{"stringValue": "\#(text)"}"# }
  static func reference(_ name: String) -> String { #"{"referenceValue": "\#(name)"}"# }
  static let null = #"{"nullValue": null}"#

  static func map(_ entries: (String, String)...) -> String {
    let fields = entries.map { #""\#($0.0)": \#($0.1)"# }
    return #"{"mapValue": {"fields": {\#(fields.joined(separator: ","))}}}"#
  }

  static func list(_ elements: String...) -> String {
    #"{"arrayValue": {"values": [\#(elements.joined(separator: ","))]}}"#
  }

  static func nested(_ stages: String...) -> String {
    #"{"pipelineValue": {"stages": [\#(stages.joined(separator: ","))]}}"#
  }

  static func collection(_ path: String) -> String { stage("collection", reference("/" + path)) }

  static func order(_ expression: String, descending: Bool = false) -> String {
    map(("expression", expression), ("direction", text(descending ? "descending" : "ascending")))
  }

  /// The rows of a response in a short form: `name{field: value, …}`, with the ID of the document as name.
  static func rows(_ reply: TestServer.Response) -> [String] {
    guard let messages = reply.json as? [[String: Any]] else { return ["no rows: \(reply.text)"] }
    return messages.flatMap { $0["results"] as? [[String: Any]] ?? [] }.map { row in
      let name = (row["name"] as? String)?.split(separator: "/").last.map(String.init) ?? ""
      return name + short(row["fields"] as? [String: Any] ?? [:])
    }
  }

  private static func short(_ fields: [String: Any]) -> String {
    let parts = fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { key, value in
      "\(key): \(short(value: value as? [String: Any] ?? [:]))"
    }
    return "{" + parts.joined(separator: ", ") + "}"
  }

  private static func short(value: [String: Any]) -> String {
    guard let (kind, content) = value.first else { return "nothing" }
    switch kind {
    case "mapValue": return short((content as? [String: Any])?["fields"] as? [String: Any] ?? [:])
    case "arrayValue":
      let values = (content as? [String: Any])?["values"] as? [[String: Any]] ?? []
      return "[" + values.map(short(value:)).joined(separator: ", ") + "]"
    case "stringValue": return "'\(content)'"
    case "nullValue": return "null"
    case "doubleValue": return "\(content)d"
    case "booleanValue": return content as? Bool == true ? "true" : "false"
    case "referenceValue": return "@" + ((content as? String)?.split(separator: "/").last.map(String.init) ?? "")
    default: return "\(content)"
    }
  }
}

extension TestServer {
  /// Runs a pipeline over REST.
  func pipeline(
    _ stages: [String], options: String = "{}", more: String = "", headers: [(String, String)] = []
  ) throws -> Response {
    try call("POST", ":executePipeline", Pipe.body(stages, options: options, more: more), headers: headers)
  }

  /// Creates documents, each given as path and `fields` in JSON.
  func create(_ documents: [(path: String, fields: String)]) throws {
    for (path, fields) in documents {
      let parts = path.split(separator: "/").map(String.init)
      let parent = parts.dropLast().map { "/" + $0 }.joined()
      let reply = try call("POST", "\(parent)?documentId=\(parts[parts.count - 1])", "{\"fields\": \(fields)}")
      #expect(reply.status == 200, "\(path): \(reply.text)")
    }
  }
}
