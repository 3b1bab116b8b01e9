package import DocumentModel
package import WireFormat

/// The strings of a document that a search reads: those in certain fields, or all. Arrays and maps contribute the
/// strings inside them.
package struct TextFields: Sendable {
  private let paths: [FieldPath]?

  /// Selects the strings in the given fields, or all strings of a document if `paths` is `nil`.
  package init(_ paths: [FieldPath]?) { self.paths = paths }

  /// Calls `body` with each string, in UTF-8: field by field, and in the order of the document within each.
  /// - Throws: ``WireError`` if the fields are damaged.
  package func forEachString(in map: EncodedMap, _ body: (UnsafeRawBufferPointer) -> Void) throws(WireError) {
    guard let paths else { return try Self.visit(map, body) }
    for path in paths {
      if let value = try map.value(at: path) { try Self.visit(value, body) }
    }
  }

  // The nesting of a document bounds the recursion.

  private static func visit(_ map: EncodedMap, _ body: (UnsafeRawBufferPointer) -> Void) throws(WireError) {
    guard try !map.isOpaque else { return }
    var entries = map.makeIterator()
    while let entry = try entries.next() { try visit(entry.value, body) }
  }

  private static func visit(_ value: EncodedValue, _ body: (UnsafeRawBufferPointer) -> Void) throws(WireError) {
    switch try value.content {
    case .string(let text): body(text)
    case .map(let map): try visit(map, body)
    case .array(let array):
      var elements = array.makeIterator()
      while let element = try elements.next() { try visit(element, body) }
    default: break
    }
  }
}
