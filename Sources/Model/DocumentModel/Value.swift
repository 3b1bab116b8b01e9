/// One Firestore value as a tree, for operands, transforms, tests and tools.
///
/// Stored documents are read from their bytes by `WireFormat`, never as trees. Two values are equal if their stored
/// forms are: `1` is not `1.0`, two spellings of the same accented letter differ, and NaN equals NaN. For the order
/// of queries use ``compare(_:_:)``.
package enum Value: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case timestamp(Timestamp)
  case string(String)
  case bytes([UInt8])
  /// A full document name.
  case reference(String)
  case geoPoint(GeoPoint)
  case array([Value])
  case map(MapValue)

  /// Returns a vector: the map that represents it on the wire (firestore-api.md, section 2.2).
  package static func vector(_ components: [Double]) -> Value {
    .map(
      MapValue([
        (MapValue.typeKey, .string(MapValue.vectorType)), (MapValue.vectorKey, .array(components.map(Value.double))),
      ]))
  }
}

/// A geographic point, in degrees.
package struct GeoPoint: Hashable, Sendable {
  /// -90 to 90.
  package var latitude: Double
  /// -180 to 180.
  package var longitude: Double

  /// Creates a point. The range is checked when the value is stored.
  package init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

/// A map of fields, sorted by the UTF-8 bytes of their names.
package struct MapValue: Sendable {
  /// A field: its name and its value.
  package typealias Entry = (key: String, value: Value)

  static let typeKey = "__type__"
  static let vectorKey = "value"
  static let vectorType = "__vector__"

  /// The fields in order.
  package private(set) var entries: [Entry] = []

  /// Creates an empty map.
  package init() {}

  /// Creates a map from unsorted fields. Of fields with the same name the last one is kept.
  package init(_ fields: [(String, Value)]) {
    for (key, value) in fields { self[key] = value }
  }

  /// The field with a name. Assigning `nil` removes it. Cost: a binary search.
  package subscript(key: String) -> Value? {
    get {
      let (index, found) = position(of: key)
      return found ? entries[index].value : nil
    }
    set {
      let (index, found) = position(of: key)
      switch (found, newValue) {
      case (true, let value?): entries[index].value = value
      case (true, nil): entries.remove(at: index)
      case (false, let value?): entries.insert((key, value), at: index)
      case (false, nil): break
      }
    }
  }

  /// The value at a path through nested maps, or `nil` if a step is missing or not a map. Paths do not lead into a
  /// vector or a BSON value.
  package subscript(path: FieldPath) -> Value? {
    var current = self
    for (depth, segment) in path.segments.enumerated() {
      guard let value = current[segment] else { return nil }
      if depth == path.segments.count - 1 { return value }
      guard case .map(let inner) = value, !inner.isOpaque else { return nil }
      current = inner
    }
    return nil
  }

  /// Sets the value at a path. A step that is not a map is replaced by a map (firestore-api.md, section 7.1).
  package mutating func set(_ value: Value, at path: FieldPath) {
    set(value, at: path.segments[...])
  }

  /// Removes the value at a path. Does nothing if a step is missing or not a map.
  package mutating func remove(at path: FieldPath) {
    remove(at: path.segments[...])
  }

  private mutating func set(_ value: Value, at segments: ArraySlice<String>) {
    guard let first = segments.first else { return }
    if segments.count == 1 {
      self[first] = value
      return
    }
    var inner = takeMap(at: first) ?? MapValue()
    inner.set(value, at: segments.dropFirst())
    self[first] = .map(inner)
  }

  /// Removes a nested map from its field, so that changing it does not copy it. The field holds null until the
  /// caller stores the map again. Returns `nil`, and changes nothing, if the field does not hold a map.
  private mutating func takeMap(at key: String) -> MapValue? {
    let (index, found) = position(of: key)
    guard found, case .map(let map) = entries[index].value, !map.isOpaque else { return nil }
    entries[index].value = .null
    return map
  }

  private mutating func remove(at segments: ArraySlice<String>) {
    guard let first = segments.first else { return }
    if segments.count == 1 {
      self[first] = nil
      return
    }
    guard var inner = takeMap(at: first) else { return }
    inner.remove(at: segments.dropFirst())
    self[first] = .map(inner)
  }

  private func position(of key: String) -> (index: Int, found: Bool) {
    var low = 0
    var high = entries.count
    // Builders mostly add keys in order, so try the end first.
    if let last = entries.last, Ordering.bytes(last.key.utf8, key.utf8) == .less { return (high, false) }
    while low < high {
      let middle = (low + high) / 2
      switch Ordering.bytes(entries[middle].key.utf8, key.utf8) {
      case .less: low = middle + 1
      case .greater: high = middle
      case .equal: return (middle, true)
      }
    }
    return (low, false)
  }

  /// The components if this map represents a vector, else `nil`.
  package var vectorComponents: [Value]? {
    guard entries.count == 2, case .string(let type)? = self[Self.typeKey],
      type.utf8.elementsEqual(Self.vectorType.utf8),
      case .array(let components)? = self[Self.vectorKey]
    else { return nil }
    return components
  }
}

extension MapValue: Equatable {
  package static func == (a: MapValue, b: MapValue) -> Bool {
    a.entries.count == b.entries.count
      && zip(a.entries, b.entries).allSatisfy { $0.key.utf8.elementsEqual($1.key.utf8) && $0.value == $1.value }
  }
}

extension Value: Equatable {
  package static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.boolean(let x), .boolean(let y)): x == y
    case (.integer(let x), .integer(let y)): x == y
    case (.double(let x), .double(let y)): x.bitPattern == y.bitPattern || (x.isNaN && y.isNaN)
    case (.timestamp(let x), .timestamp(let y)): x == y
    case (.string(let x), .string(let y)), (.reference(let x), .reference(let y)): x.utf8.elementsEqual(y.utf8)
    case (.bytes(let x), .bytes(let y)): x == y
    case (.geoPoint(let x), .geoPoint(let y)): x == y
    case (.array(let x), .array(let y)): x == y
    case (.map(let x), .map(let y)): x == y
    default: false
    }
  }
}
