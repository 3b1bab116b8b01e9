import DocumentModel
import Foundation
import PipelineExpressions
import TestSupport
import WireFormat

/// A call of a function with its documented result; one line of `fixtures/pipelines/functions.jsonl`.
struct FunctionFact: Sendable {
  enum Result {
    case value(Value)
    case absent
    case error
  }

  let line: String
  let function: String
  let call: PipelineExpression
  let result: JSONNode
  /// The greatest difference between doubles.
  let tolerance: Double

  static let all: [FunctionFact] = {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
    let file = "\(root)/fixtures/pipelines/functions.jsonl"
    let text = String(decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self)
    return text.split(separator: "\n").compactMap { FunctionFact(String($0)) }
  }()

  static let functions = Set(all.map(\.function)).sorted()

  private init?(_ line: String) {
    guard let node = try? JSONNode(parsing: Array(line.utf8)), let function = node["function"]?.stringValue,
      let result = node["result"]
    else { return nil }
    self.line = line
    self.function = function
    self.result = result
    let arguments = (node["args"]?.elements ?? []).compactMap(PipelineExpression.init(protoJSON:))
    guard arguments.count == node["args"]?.elements.count else { return nil }
    call = .call(function, arguments)
    tolerance = node["tolerance"]?.doubleValue ?? 0
  }

  /// The documented result, or `nil` if the line is malformed.
  var expected: Result? {
    if result["error"] != nil { return .error }
    if result["absent"] != nil { return .absent }
    guard case .constant(let value)? = PipelineExpression(protoJSON: result) else { return nil }
    return .value(value)
  }
}

extension JSONNode {
  /// The value of a number, or of the text that proto JSON uses for a number without digits.
  fileprivate var doubleValue: Double? {
    switch self {
    case .number(let text): Double(text)
    case .string("NaN"): .nan
    case .string("Infinity"): .infinity
    case .string("-Infinity"): -.infinity
    case .string(let text): Double(text)
    default: nil
    }
  }
}

extension PipelineExpression {
  /// Reads a value of proto JSON. Returns `nil` if it is malformed.
  init?(protoJSON node: JSONNode) {
    guard let member = node.members.first else { return nil }
    let content = member.value
    switch member.name {
    case "nullValue": self = .constant(.null)
    case "booleanValue":
      guard case .bool(let flag) = content else { return nil }
      self = .constant(.boolean(flag))
    case "integerValue":
      guard let number = content.stringValue.flatMap({ Int64($0) }) else { return nil }
      self = .constant(.integer(number))
    case "doubleValue":
      guard let number = content.doubleValue else { return nil }
      self = .constant(.double(number))
    case "stringValue": self = .constant(.string(content.stringValue ?? ""))
    case "bytesValue":
      self = .constant(.bytes([UInt8](Data(base64Encoded: content.stringValue ?? "") ?? Data())))
    case "timestampValue":
      guard let time = Timestamp(rfc3339: Array((content.stringValue ?? "").utf8)) else { return nil }
      self = .constant(.timestamp(time))
    case "referenceValue": self = .constant(.reference(content.stringValue ?? ""))
    case "geoPointValue":
      self = .constant(
        .geoPoint(
          GeoPoint(
            latitude: content["latitude"]?.doubleValue ?? 0, longitude: content["longitude"]?.doubleValue ?? 0)))
    case "arrayValue": self = Self.array(content["values"]?.elements ?? [])
    case "mapValue": self = Self.map(content["fields"]?.members ?? [])
    case "fieldReferenceValue":
      guard let path = Self.fieldPath(content.stringValue ?? "") else { return nil }
      self = .field(path)
    case "variableReferenceValue": self = .variable(content.stringValue ?? "")
    case "functionValue":
      let arguments = content["args"]?.elements.compactMap(PipelineExpression.init(protoJSON:)) ?? []
      self = .call(content["name"]?.stringValue ?? "", arguments)
    default: return nil
    }
  }

  private var constant: Value? {
    if case .constant(let value) = self { value } else { nil }
  }

  private static func array(_ nodes: [JSONNode]) -> PipelineExpression {
    let items = nodes.compactMap(PipelineExpression.init(protoJSON:))
    let constants = items.compactMap(\.constant)
    return constants.count == items.count ? .constant(.array(constants)) : .array(items)
  }

  private static func map(_ members: [JSONNode.Member]) -> PipelineExpression {
    let entries = members.compactMap { member in
      PipelineExpression(protoJSON: member.value).map { Entry(key: member.name, value: $0) }
    }
    let constants = entries.compactMap { entry in entry.value.constant.map { (entry.key, $0) } }
    guard constants.count == entries.count else { return .map(entries) }
    let map = MapValue(constants)
    // Stored vectors have doubles only. The decoder of requests converts integers.
    guard let components = map.vectorComponents else { return .constant(.map(map)) }
    return .constant(
      .vector(components.map { if case .integer(let number) = $0 { Double(number) } else { $0.doubleContent } }))
  }
}

extension Value {
  /// The content of a double, otherwise NaN.
  fileprivate var doubleContent: Double {
    if case .double(let number) = self { number } else { .nan }
  }
}
