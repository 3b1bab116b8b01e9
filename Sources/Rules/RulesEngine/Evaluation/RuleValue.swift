import DocumentModel
import WireFormat

/// A value of the rules language. Trivial: it owns nothing.
///
/// Pointers lead into the request, the program's constants or the evaluator's arena and are valid during one
/// decision. Lists and maps come in two forms: as canonical protobuf bytes of a document, looked at in place, and as
/// items that an expression made.
enum RuleValue {
  case failure(UnsafePointer<Failure>)
  case null
  case bool(Bool)
  case int(Int64)
  case float(Double)
  /// UTF-8; halves of surrogate pairs that stand alone are encoded by themselves.
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
  /// `request`, `resource` and what hangs on them, made when asked for.
  case object(RequestObject)
  /// Distinct items in the order of their first appearance.
  case set(UnsafeBufferPointer<RuleValue>)
  /// The later map, then the earlier one.
  case mapDiff(UnsafePointer<RuleValue>)
  case vector(UnsafeRawBufferPointer)
  /// What a query says about a field whose value it does not fix.
  case constraint(UnsafeBufferPointer<FieldConstraint>)
  /// A map of which a query fixes some fields; of the others nothing is known.
  case partialMap(UnsafeBufferPointer<MapEntry>)

  /// Whether this is an error.
  @inline(__always)
  var isFailure: Bool {
    if case .failure = self { true } else { false }
  }

  /// Whether this is `true`.
  @inline(__always)
  var isTrue: Bool {
    if case .bool(true) = self { true } else { false }
  }

  /// The type as `is` and messages name it; an error has none and answers `any`.
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
    case .mapDiff: .mapDiff
    case .vector: .vector
    case .constraint: .constraint
    }
  }
}

/// One entry of a map that an expression made.
struct MapEntry {
  let key: UnsafeRawBufferPointer
  var value: RuleValue
}

/// One segment of a path value.
struct PathSegment {
  enum Kind: UInt8 {
    case simple
    /// A `{name}` that nothing is bound to.
    case capture
    /// A `{name=**}` that nothing is bound to.
    case globCapture
    /// A `{name}` bound to text.
    case boundCapture
    /// A part of what a `{name=**}` is bound to; the first part says so with ``PathSegment/startsGlob``.
    case boundGlob
  }

  let kind: Kind
  var startsGlob = false
  /// The text of a simple or bound segment.
  let text: UnsafeRawBufferPointer
  /// The name of a capture.
  let name: UnsafeRawBufferPointer

  /// A segment of text.
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

/// The maps of a request that are made when asked for.
enum RequestObject {
  case request
  case auth
  case query
  case resource(UnsafePointer<DocumentView>)
}

/// A document as rules see it.
struct DocumentView {
  /// The segments of its full name, from `databases`; empty where the name is not known.
  let name: UnsafeBufferPointer<PathSegment>
  let data: RuleValue
}

/// Seconds and nanoseconds: since 1970 for a timestamp, of the same sign for a duration.
struct Moment: Equatable {
  let seconds: Int64
  let nanos: Int32
}

/// Byte strings.
enum RuleBytes {
  @inline(__always)
  static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && EncodedMap.compare(a, b) == .equal
  }

  /// The UTF-8 bytes of a literal, which live forever.
  static func of(_ text: StaticString) -> UnsafeRawBufferPointer { text.bytes }

  @inline(__always)
  static func equal(_ a: UnsafeRawBufferPointer, _ b: StaticString) -> Bool {
    a.count == b.utf8CodeUnitCount
      && equal(a, UnsafeRawBufferPointer(start: b.utf8Start, count: b.utf8CodeUnitCount))
  }
}

extension StaticString {
  /// The UTF-8 bytes, which live forever.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
