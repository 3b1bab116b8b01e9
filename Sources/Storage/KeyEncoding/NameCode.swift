package import DocumentModel

/// Paths as codes that sort in document-name order (firestore-api.md, section 3.1).
package enum NameCode {
  /// Appends a path: its segments, each ending itself, so that a prefix comes first.
  package static func append(_ path: ResourcePath, to out: inout [UInt8]) {
    for segment in path.segments { OrderedCode.append(segment: segment, to: &out) }
  }

  /// The code of a path.
  package static func encode(_ path: ResourcePath) -> [UInt8] {
    var code: [UInt8] = []
    append(path, to: &code)
    return code
  }

  /// The path of a code, or `nil` where the bytes are none.
  package static func decode(_ code: [UInt8]) -> ResourcePath? {
    var bytes: [UInt8] = []
    let isPath = code.withUnsafeBytes { code in
      var rest = code
      while !rest.isEmpty {
        if !bytes.isEmpty { bytes.append(UInt8(ascii: "/")) }
        guard OrderedCode.take(segment: &rest, into: &bytes) else { return false }
      }
      return true
    }
    return isPath ? ResourcePath(uncheckedBytes: bytes) : nil
  }

  /// The code of the path in a reference, or `nil` where it is no reference into `database`.
  ///
  /// The path needs not be one a document can have: bounds may hold reserved ids and NUL bytes (section 4.8).
  package static func path(of value: Value, in database: DatabaseID) -> [UInt8]? {
    guard case .reference(let name) = value else { return nil }
    let root = database.documentsRoot + "/"
    guard name.utf8.starts(with: root.utf8) else { return nil }
    return encode(ResourcePath(uncheckedBytes: Array(name.utf8.dropFirst(root.utf8.count))))
  }

  /// Whether a path's code stands in a relation to any, or to all, of the codes.
  package static func matches(_ name: [UInt8], _ op: FieldOperator, _ codes: [[UInt8]]) -> Bool {
    switch op {
    case .in: return codes.contains(name)
    case .notIn: return !codes.contains(name)
    case .arrayContains, .arrayContainsAny: return false
    default: break
    }
    guard let operand = codes.first else { return false }
    let order = Ordering.raw(name, operand)
    switch op {
    case .lessThan: return order == .less
    case .lessThanOrEqual: return order != .greater
    case .greaterThan: return order == .greater
    case .greaterThanOrEqual: return order != .less
    case .notEqual: return order != .equal
    default: return order == .equal
    }
  }
}
