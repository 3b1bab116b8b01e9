import DocumentModel
import WireFormat

/// A value in the form in which Firebase's SDKs print it with `JSON.stringify`, for example a map with `_seconds` and
/// `_nanoseconds`.
///
/// Sources: the classes of `@google-cloud/firestore` (fields with underscores), and `toJSON` of the web SDK (a member
/// `type` such as `firestore/timestamp/1.0`). Node prints bytes as `{"type": "Buffer", "data": […]}`.
enum SDKValue {
  case timestamp(Timestamp)
  case geoPoint(GeoPoint)
  /// A path below the documents, or a full name.
  case reference([UInt8])
  case bytes([UInt8])
  /// Base64.
  case base64([UInt8])
  case vector([Double])

  /// Returns whether a map with this key can be such a value. It is a quick test, since most maps are not.
  @inline(__always)
  static func mayHave(_ key: UnsafeRawBufferPointer) -> Bool {
    switch key.first {
    case UInt8(ascii: "_"): true
    case UInt8(ascii: "s"): DocumentBuilder.isEqual(key, "seconds")
    case UInt8(ascii: "t"): DocumentBuilder.isEqual(key, "type")
    default: false
    }
  }

  /// Returns the value that a map is the form of, or `nil` for any other map.
  init?(_ map: EncodedMap) {
    var count = 0
    var entries = map.makeIterator()
    while count <= 4, (try? entries.next()) != nil { count += 1 }
    func text(_ key: String) -> String? { Self.text(map, key) }
    let type = text("type")
    switch (type, count) {
    case (nil, 1):
      guard let numbers = Self.numbers(map, "_values") else { return nil }
      self = .vector(numbers)
    case (nil, 2):
      if let moment = Self.timestamp(map, "_seconds", "_nanoseconds") ?? Self.timestamp(map, "seconds", "nanoseconds") {
        self = .timestamp(moment)
      } else if let point = Self.point(map, "_latitude", "_longitude") {
        self = .geoPoint(point)
      } else {
        fallthrough
      }
    case (nil, 3):
      guard count == 2 || Self.map(map, "_converter") != nil, let name = Self.reference(map) else { return nil }
      self = .reference(name)
    case ("Buffer", 2):
      guard let bytes = Self.numbers(map, "data")?.map({ UInt8(exactly: $0) }), !bytes.contains(nil) else {
        return nil
      }
      self = .bytes(bytes.compactMap(\.self))
    case ("firestore/timestamp/1.0", 3):
      guard let moment = Self.timestamp(map, "seconds", "nanoseconds") else { return nil }
      self = .timestamp(moment)
    case ("firestore/geoPoint/1.0", 3):
      guard let point = Self.point(map, "latitude", "longitude") else { return nil }
      self = .geoPoint(point)
    case ("firestore/vectorValue/1.0", 2):
      guard let numbers = Self.numbers(map, "vectorValues") else { return nil }
      self = .vector(numbers)
    case ("firestore/bytes/1.0", 2):
      guard let base64 = text("bytes") else { return nil }
      self = .base64(Array(base64.utf8))
    case ("firestore/documentReference/1.0", 2):
      guard let path = text("referencePath") else { return nil }
      self = .reference(Array(path.utf8))
    default: return nil
    }
  }

  // MARK: Members

  private static func content(_ map: EncodedMap, _ key: String) -> EncodedValue.Content? {
    guard let value = try? map.value(for: key) else { return nil }
    return try? value.content
  }

  private static func text(_ map: EncodedMap, _ key: String) -> String? {
    guard case .string(let text)? = content(map, key) else { return nil }
    return String(decoding: text, as: UTF8.self)
  }

  private static func map(_ map: EncodedMap, _ key: String) -> EncodedMap? {
    guard case .map(let inner)? = content(map, key) else { return nil }
    return inner
  }

  private static func number(_ content: EncodedValue.Content?) -> Double? {
    switch content {
    case .integer(let number): Double(number)
    case .double(let number): number
    default: nil
    }
  }

  private static func numbers(_ map: EncodedMap, _ key: String) -> [Double]? {
    guard case .array(let array)? = content(map, key) else { return nil }
    var numbers: [Double] = []
    var elements = array.makeIterator()
    while let element = try? elements.next() {
      guard let number = number(try? element.content) else { return nil }
      numbers.append(number)
    }
    return numbers
  }

  private static func timestamp(_ map: EncodedMap, _ seconds: String, _ nanos: String) -> Timestamp? {
    guard case .integer(let seconds)? = content(map, seconds), case .integer(let nanos)? = content(map, nanos),
      let nanos = Int32(exactly: nanos)
    else { return nil }
    return try? Timestamp(seconds: seconds, nanos: nanos)
  }

  private static func point(_ map: EncodedMap, _ latitude: String, _ longitude: String) -> GeoPoint? {
    guard let latitude = number(content(map, latitude)), let longitude = number(content(map, longitude)),
      (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude)
    else { return nil }
    return GeoPoint(latitude: latitude, longitude: longitude)
  }

  /// Returns the name in a map with `_firestore` and `_path`.
  private static func reference(_ map: EncodedMap) -> [UInt8]? {
    guard let firestore = Self.map(map, "_firestore"), let path = Self.map(map, "_path"),
      case .array(let array)? = content(path, "segments")
    else { return nil }
    var name: [UInt8] = []
    if let project = text(path, "projectId") ?? text(firestore, "projectId") {
      let database = text(path, "databaseId") ?? text(firestore, "databaseId") ?? DatabaseID.defaultDatabase
      name += Array("projects/\(project)/databases/\(database)/documents/".utf8)
    }
    var segments = array.makeIterator()
    var isFirst = true
    while let segment = try? segments.next() {
      guard case .string(let id)? = try? segment.content else { return nil }
      if !isFirst { name.append(UInt8(ascii: "/")) }
      isFirst = false
      name.append(contentsOf: id)
    }
    return isFirst ? nil : name
  }
}

extension DocumentBuilder {
  /// Replaces the map that was just appended at a mark by the value of Firebase's SDKs that it is the form of, if it is
  /// one and the options allow it. Otherwise counts it.
  mutating func replaceSDKValue(from mark: Int, _ notation: Notation) throws(FixtureTreeError) {
    let value = encoder.withValue(from: mark) { value -> SDKValue? in
      guard case .map(let map)? = try? value.content else { return nil }
      return SDKValue(map)
    }
    guard case .some(.some(let value)) = value else { return }
    guard options.readsSDKValues ?? (notation == .record) else {
      tally.sdkValuesLeft += 1
      return
    }
    tally.sdkValuesRead += 1
    encoder.removeValue(from: mark)
    switch value {
    case .timestamp(let moment): encoder.timestamp(moment)
    case .geoPoint(let point): try encode { (encoder) throws(WireError) in try encoder.geoPoint(point) }
    case .reference(let name):
      try name.withUnsafeBytesTyped { (text) throws(FixtureTreeError) in try reference(text) }
    case .bytes(let bytes):
      try encode { (encoder) throws(WireError) in
        try bytes.withUnsafeBytesTyped { (buffer) throws(WireError) in try encoder.bytes(buffer) }
      }
    case .base64(let text): try text.withUnsafeBytesTyped { (text) throws(FixtureTreeError) in try bytes(text) }
    case .vector(let components): try vector(components)
    }
  }
}
