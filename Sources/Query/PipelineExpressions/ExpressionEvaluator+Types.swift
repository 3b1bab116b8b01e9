import DocumentModel
import WireFormat

/// The names of types (pipelines.md, section 4.9).
enum TypeName {
  /// The names that `is_type` accepts.
  static let all: Set<String> = [
    "null", "boolean", "int32", "int64", "float64", "decimal128", "timestamp", "string", "bytes", "array", "map",
    "reference", "vector", "geo_point", "max_key", "min_key", "object_id", "regex", "bson_timestamp",
    "request_timestamp", "number",
  ]

  /// The name of a value's type, or `nil` for absent and errors.
  static func of(_ value: ExpressionValue) -> StaticString? {
    switch value {
    case .error, .absent: nil
    case .null: "null"
    case .boolean: "boolean"
    case .integer: "int64"
    case .double: "float64"
    case .timestamp: "timestamp"
    case .string: "string"
    case .bytes: "bytes"
    case .reference: "reference"
    case .geoPoint: "geo_point"
    case .array, .encodedArray: "array"
    case .map, .encodedMap: "map"
    case .vector: "vector"
    case .bson(let bytes): ofBSON(bytes)
    }
  }

  private static func ofBSON(_ bytes: UnsafeRawBufferPointer) -> StaticString {
    switch (try? EncodedMap(mapValue: bytes).bson)?.type {
    case .minKey: "min_key"
    case .maxKey: "max_key"
    case .objectID: "object_id"
    case .int32: "int32"
    case .decimal128: "decimal128"
    case .binary: "bytes"
    case .timestamp: "bson_timestamp"
    case .regex: "regex"
    case nil: "map"
    }
  }
}

/// Types, sizes and references (pipelines.md, sections 4.9 and 4.10).
extension ExpressionEvaluator {
  func type(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    let value = arguments[0]
    switch function {
    case .type: return TypeName.of(value).map { .string(Self.bytes($0)) } ?? .null
    case .isType:
      guard case .string(let wanted) = arguments[1] else { return fail(.isType, .type, 2) }
      guard TypeName.all.contains(String(decoding: wanted, as: UTF8.self)) else { return fail(.isType, .argument, 2) }
      guard let name = TypeName.of(value) else { return .null }
      if wanted.elementsEqual(Self.bytes("number")) {
        return .boolean(!ValueTypes.number.isDisjoint(with: value.ordinary.types))
      }
      return .boolean(wanted.elementsEqual(Self.bytes(name)))
    default:
      let size = storageSize(value)
      return work < 0 ? exhausted(.work) : .integer(Int64(size))
    }
  }

  /// The size of a value in a document, in bytes, by the published rules. A reference counts one byte more than the
  /// name of a document (pipelines.md, section 10.3).
  private func storageSize(_ value: ExpressionValue) -> Int {
    guard charge(8) else { return 0 }
    switch value {
    case .error, .absent, .null, .boolean: return 1
    case .integer, .double, .timestamp: return 8
    case .geoPoint: return 16
    case .string(let text): return text.count + 1
    case .bytes(let bytes): return bytes.count
    case .reference(let name):
      let path = name[Self.pathStart(name)...]
      return 17 + path.split(separator: UInt8(ascii: "/")).reduce(0) { $0 + $1.count + 1 }
    case .vector: return 8 * (components(value)?.count ?? 0)
    case .array, .encodedArray:
      var items = ExpressionItems(value)
      var size = 0
      while let item = items.next() { size += storageSize(item) }
      return size
    case .map, .encodedMap:
      var entries = ExpressionEntries(value)
      var size = 0
      while let entry = entries.next() { size += entry.key.count + 1 + storageSize(entry.value) }
      return size
    case .bson(let bytes): return bytes.count
    }
  }

  // MARK: References

  /// The offset of the path below `projects/{p}/databases/{d}/documents/`, or the length of a name without a path.
  static func pathStart(_ name: UnsafeRawBufferPointer) -> Int {
    var slashes = 0
    for (offset, byte) in name.enumerated() where byte == UInt8(ascii: "/") {
      slashes += 1
      if slashes == 5 { return offset + 1 }
    }
    return name.count
  }

  func reference(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    guard case .reference(let name) = arguments[0] else { return fail(function, .type, 1) }
    guard charge(name.count) else { return exhausted(.work) }
    let start = Self.pathStart(name)
    // The offset after each segment of the path.
    var ends: [Int] = []
    for index in start..<max(start, name.count) where name[index] == UInt8(ascii: "/") { ends.append(index) }
    if start < name.count { ends.append(name.count) }
    func segment(_ index: Int) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: name[(index == 0 ? start : ends[index - 1] + 1)..<ends[index]])
    }
    switch function {
    case .documentID: return ends.isEmpty ? .null : .string(segment(ends.count - 1))
    case .collectionID: return ends.count < 2 ? .null : .string(segment(ends.count - 2))
    case .parent:
      guard ends.count >= 2 else { return .null }
      let end = ends.count == 2 ? start - 1 : ends[ends.count - 3]
      return .reference(UnsafeRawBufferPointer(rebasing: name[..<end]))
    default: return slice(name, ends, arguments)
    }
  }

  /// Evaluates `reference_slice(reference, offset, length)`: some of the pairs of collection and document.
  private func slice(_ name: UnsafeRawBufferPointer, _ ends: [Int], _ arguments: Arguments) -> ExpressionValue {
    guard case .integer(let offset) = arguments[1], case .integer(let length) = arguments[2] else { return .null }
    guard length >= 0 else { return fail(.referenceSlice, .negativeLength) }
    let pairs = Int64(ends.count / 2)
    let first = Int(offset < 0 ? max(0, pairs + max(offset, -pairs)) : min(offset, pairs))
    let count = Int(min(length, pairs - Int64(first)))
    let start = Self.pathStart(name)
    let from = first == 0 ? start : ends[2 * first - 1] + 1
    scratch.removeAll(keepingCapacity: true)
    scratch.append(raw: UnsafeRawBufferPointer(rebasing: name[..<max(0, start - 1)]))
    if count > 0 {
      scratch.append(UInt8(ascii: "/"))
      scratch.append(raw: UnsafeRawBufferPointer(rebasing: name[from..<ends[2 * (first + count) - 1]]))
    }
    guard let bytes = copy(scratch) else { return exhausted(.memory) }
    return .reference(bytes)
  }
}
