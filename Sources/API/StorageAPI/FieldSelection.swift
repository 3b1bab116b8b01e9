import Files
import GatewayCore
import WireFormat

/// The parameter `fields`: the members of a response that a client requests, such as `items(name,size),nextPageToken`.
///
/// A member is named by its path, with `/` between the names. Parentheses enclose several paths below one member, and `*`
/// is every member. In an array the selection applies to each element. Unknown names select nothing.
struct FieldSelection: Sendable, Equatable {
  /// The longest text, in bytes, and the deepest nesting of a selection.
  private static let bytesMax = 4096
  private static let depthMax = 16

  private struct Member: Sendable, Equatable {
    let name: [UInt8]
    /// The selection below the member, or `nil` for the whole member.
    let inner: [Member]?
  }

  private let members: [Member]

  /// Reads the parameter of a request. Returns `nil` if it is missing or empty.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if it is malformed.
  init?(_ parameters: QueryParameters) throws(FilesError) {
    guard let text = parameters.value("fields"), !text.isEmpty else { return nil }
    try self.init(text)
  }

  /// Parses a selection.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the text is malformed.
  init(_ text: String) throws(FilesError) {
    var rest = Array(text.utf8)[...]
    guard rest.count <= Self.bytesMax, let members = Self.members(&rest, depth: 0), rest.isEmpty else {
      throw .invalid("Invalid field selection \(text.prefix(100))")
    }
    self.members = members
  }

  /// Parses paths that are separated by commas. Returns `nil` if they are malformed.
  private static func members(_ rest: inout ArraySlice<UInt8>, depth: Int) -> [Member]? {
    var members: [Member] = []
    repeat {
      guard let member = member(&rest, depth: depth) else { return nil }
      members.append(member)
    } while take(",", &rest)
    return members
  }

  private static func member(_ rest: inout ArraySlice<UInt8>, depth: Int) -> Member? {
    let name = Array(rest.prefix { !",/()".utf8.contains($0) })
    guard !name.isEmpty, depth < depthMax else { return nil }
    rest = rest.dropFirst(name.count)
    if take("/", &rest) { return self.member(&rest, depth: depth + 1).map { Member(name: name, inner: [$0]) } }
    guard take("(", &rest) else { return Member(name: name, inner: nil) }
    guard let inner = members(&rest, depth: depth + 1), take(")", &rest) else { return nil }
    return Member(name: name, inner: inner)
  }

  private static func take(_ character: StaticString, _ rest: inout ArraySlice<UInt8>) -> Bool {
    guard rest.first == character.utf8Start[0] else { return false }
    rest = rest.dropFirst()
    return true
  }

  /// Returns the selected members of a JSON text, or the whole text if it cannot be parsed. Cost: parses the text.
  func apply(to json: [UInt8], _ style: JSONWriter.Style) -> [UInt8] {
    let selected = try? json.withUnsafeBytes { bytes in
      Result { () throws(WireError) in
        try JSONDocument().withParsed(bytes) { (root) throws(WireError) in
          var writer = JSONWriter(style)
          Self.append(root, members, to: &writer)
          return writer.finish()
        }
      }
    }.get()
    return selected ?? json
  }

  private static func append(_ value: JSONValue, _ members: [Member], to writer: inout JSONWriter) {
    switch value.kind {
    case .object(var entries):
      writer.beginObject()
      while let (name, value) = entries.next() {
        let chosen = members.filter { $0.name == [UInt8(ascii: "*")] || name.bytes.elementsEqual($0.name) }
        guard !chosen.isEmpty else { continue }
        writer.key(name.bytes)
        if chosen.contains(where: { $0.inner == nil }) {
          writer.append(value)
        } else {
          append(value, chosen.flatMap { $0.inner ?? [] }, to: &writer)
        }
      }
      writer.endObject()
    case .array(var elements):
      writer.beginArray()
      while let element = elements.next() { append(element, members, to: &writer) }
      writer.endArray()
    default: writer.append(value)
    }
  }
}
