package import DocumentModel

/// The encoding of paths as bytes that sort in document-name order (firestore-api.md, section 3.1).
package enum NameCode {
  /// Appends the code of a path: its segments, each self-delimiting, so that a path precedes its extensions.
  package static func append(_ path: ResourcePath, to out: inout [UInt8]) {
    for segment in path.segments { OrderedCode.append(segment: segment, to: &out) }
  }

  /// Returns the code of a path.
  package static func encode(_ path: ResourcePath) -> [UInt8] {
    var code: [UInt8] = []
    append(path, to: &code)
    return code
  }

  /// Returns the path of a code, or `nil` if the code is malformed.
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

  /// Returns the code of the path in a reference, or `nil` if the value is not a reference into `database`.
  ///
  /// The path need not be valid for a document: query bounds may contain reserved IDs and NUL bytes
  /// (firestore-api.md, section 4.8).
  package static func path(of value: Value, in database: DatabaseID) -> [UInt8]? {
    guard case .reference(let name) = value else { return nil }
    let root = database.documentsRoot + "/"
    guard name.utf8.starts(with: root.utf8) else { return nil }
    return encode(ResourcePath(uncheckedBytes: Array(name.utf8.dropFirst(root.utf8.count))))
  }

  /// Returns whether a path's code satisfies an operator with the given operands.
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
