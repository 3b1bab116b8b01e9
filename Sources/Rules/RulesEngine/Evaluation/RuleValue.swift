import DocumentModel
import WireFormat

/// A value of the rules language. It is trivial and owns nothing.
///
/// Its pointers refer to the request, the program's constants or the evaluator's arena, and are valid during one
/// decision. Lists and maps have two forms: the canonical protobuf bytes of a document, read in place, and the
/// items that an expression computed.
enum RuleValue {
  case failure(UnsafePointer<Failure>)
  case null
  case bool(Bool)
  case int(Int64)
  case float(Double)
  /// UTF-8. Lone halves of surrogate pairs are encoded separately.
  case string(UnsafeRawBufferPointer)
  case bytes(UnsafeRawBufferPointer)
  case timestamp(Moment)
  case duration(Moment)
  case latlng(latitude: Double, longitude: Double)
  case path(UnsafeBufferPointer<PathSegment>)
  case list(UnsafeBufferPointer<RuleValue>)
  case encodedList(UnsafeRawBufferPointer)
  case map(UnsafeBufferPointer<MapEntry>)
  /// Entries of a MapValue message.
  case encodedMap(UnsafeRawBufferPointer)
  /// The fields of a document.
  case encodedFields(UnsafeRawBufferPointer)
  /// `request`, `resource` or one of their members, created when it is read.
  case object(RequestObject)
  /// Distinct items, in the order of their first appearance.
  case set(UnsafeBufferPointer<RuleValue>)
  /// The new map, then the old one.
  case mapDiff(UnsafePointer<RuleValue>)
  case vector(UnsafeRawBufferPointer)
  /// The conditions of a query on a field whose value it does not determine.
  case constraint(UnsafeBufferPointer<FieldConstraint>)
  /// A map of which a query determines some fields. All other fields are unknown.
  case partialMap(UnsafeBufferPointer<MapEntry>)
  /// The keys of a ``partialMap(_:)``, as a list or a set. The map has the keys of these entries, and may have others.
  case partialKeys(UnsafeBufferPointer<MapEntry>, isSet: Bool)

  @inline(__always)
  var isFailure: Bool {
    if case .failure = self { true } else { false }
  }

  @inline(__always)
  var isTrue: Bool {
    if case .bool(true) = self { true } else { false }
  }

  /// The type as `is` and messages name it. The type of an error is `any`.
  var type: RuleType {
    switch self {
    case .failure: .any
    case .null: .null
    case .bool: .bool
    case .int: .int
    case .float: .float
    case .string: .string
    case .bytes: .bytes
    case .timestamp: .timestamp
    case .duration: .duration
    case .latlng: .latlng
    case .path: .path
    case .list, .encodedList: .list
    case .map, .encodedMap, .encodedFields, .object, .partialMap: .map
    case .set: .set
    case .partialKeys(_, let isSet): isSet ? .set : .list
    case .mapDiff: .mapDiff
    case .vector: .vector
    case .constraint: .constraint
    }
  }
}

/// An entry of a map that an expression computed.
struct MapEntry {
  let key: UnsafeRawBufferPointer
  var value: RuleValue
}

/// One segment of a path value.
struct PathSegment {
  enum Kind: UInt8 {
    case simple
    /// A `{name}` that is not bound.
    case capture
    /// A `{name=**}` that is not bound.
    case globCapture
    /// A `{name}` bound to text.
    case boundCapture
    /// A segment of the value of `{name=**}`. ``PathSegment/startsGlob`` marks the first one.
    case boundGlob
  }

  let kind: Kind
  var startsGlob = false
  /// The text of a simple or bound segment.
  let text: UnsafeRawBufferPointer
  /// The name of a capture.
  let name: UnsafeRawBufferPointer

  /// A simple segment.
  @inline(__always)
  init(_ text: UnsafeRawBufferPointer) {
    kind = .simple
    self.text = text
    name = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  init(_ kind: Kind, name: UnsafeRawBufferPointer, text: UnsafeRawBufferPointer, startsGlob: Bool = false) {
    self.kind = kind
    self.name = name
    self.text = text
    self.startsGlob = startsGlob
  }

  var isBound: Bool { kind != .capture && kind != .globCapture }
}

/// The maps of a request whose members are created when they are read.
enum RequestObject {
  case request
  case auth
  case query
  case resource(UnsafePointer<DocumentView>)
}

/// A document as rules see it.
struct DocumentView {
  /// The segments of the full name, from `databases`. Empty if the name is unknown.
  let name: UnsafeBufferPointer<PathSegment>
  let data: RuleValue
}

/// Functions for byte strings.
enum RuleBytes {
  @inline(__always)
  static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && EncodedMap.compare(a, b) == .equal
  }

  /// Returns the UTF-8 bytes of a literal, which are never freed.
  static func of(_ text: StaticString) -> UnsafeRawBufferPointer { text.bytes }

  @inline(__always)
  static func equal(_ a: UnsafeRawBufferPointer, _ b: StaticString) -> Bool {
    a.count == b.utf8CodeUnitCount
      && equal(a, UnsafeRawBufferPointer(start: b.utf8Start, count: b.utf8CodeUnitCount))
  }
}

extension StaticString {
  /// The UTF-8 bytes, which are never freed.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
