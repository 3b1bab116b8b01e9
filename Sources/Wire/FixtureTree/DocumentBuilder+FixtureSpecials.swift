import DocumentModel
import WireFormat

extension DocumentBuilder {
  /// Reads an object such as `{"$timestamp": …}`, whose key was just read.
  mutating func fixtureSpecial() throws(FixtureTreeError) {
    let key = tokens.text
    if Self.isEqual(key, "$timestamp") {
      try timestamp(try expectString("\"$timestamp\""))
    } else if Self.isEqual(key, "$ref") {
      try reference(try expectString("\"$ref\""))
    } else if Self.isEqual(key, "$bytes") {
      try bytes(try expectString("\"$bytes\""))
    } else if Self.isEqual(key, "$double") {
      encoder.double(try specialDouble(try next()))
    } else if Self.isEqual(key, "$geo") {
      try geoPoint()
    } else if Self.isEqual(key, "$vector") {
      try vector()
    } else {
      throw failure(
        "\(FixtureTreeError.quote(key)) is not one of $timestamp, $ref, $bytes, $geo, $double, $vector; "
          + "write a key that begins with \"$\" as \"$$…\"")
    }
    guard try next() == .objectEnd else { throw failure("a special value must be the only member of its object") }
  }

  private static let specialKeys: [StaticString] = ["$timestamp", "$ref", "$bytes", "$geo", "$double", "$vector"]

  /// Returns whether ``fixtureSpecial()`` knows a key.
  static func isSpecialKey(_ key: UnsafeRawBufferPointer) -> Bool { specialKeys.contains { isEqual(key, $0) } }

  /// Returns the number of a token, which can be the name of a number that JSON cannot express.
  private func specialDouble(_ token: JSONTokenizer.Token) throws(FixtureTreeError) -> Double {
    if token == .number { return try double() }
    if token == .string {
      if Self.isEqual(tokens.text, "NaN") { return .nan }
      if Self.isEqual(tokens.text, "Infinity") { return .infinity }
      if Self.isEqual(tokens.text, "-Infinity") { return -.infinity }
      if Self.isEqual(tokens.text, "-0") { return -0.0 }
    }
    throw failure("expected a number, \"NaN\", \"Infinity\", \"-Infinity\" or \"-0\"")
  }

  private mutating func geoPoint() throws(FixtureTreeError) {
    let form = "\"$geo\" must be [latitude, longitude]"
    guard try next() == .arrayStart, try next() == .number else { throw failure(form) }
    let latitude = try double()
    guard try next() == .number else { throw failure(form) }
    let longitude = try double()
    guard try next() == .arrayEnd else { throw failure(form) }
    try encode { (encoder) throws(WireError) in
      try encoder.geoPoint(GeoPoint(latitude: latitude, longitude: longitude))
    }
  }

  private mutating func vector() throws(FixtureTreeError) {
    guard try next() == .arrayStart else { throw failure("\"$vector\" must be an array of numbers") }
    var components: [Double] = []
    while true {
      let token = try next()
      if token == .arrayEnd { break }
      guard components.count < Limits.vectorDimensionsMax else {
        throw failure("a vector has more than \(Limits.vectorDimensionsMax) dimensions")
      }
      components.append(try specialDouble(token))
    }
    try vector(components)
  }

  /// Appends a vector.
  mutating func vector(_ components: [Double]) throws(FixtureTreeError) {
    try encode { (encoder) throws(WireError) in
      try encoder.beginMap()
      try Self.key("__type__", &encoder)
      try ("__vector__" as StaticString).withBytes { (text) throws(WireError) in try encoder.string(text) }
      encoder.endEntry()
      try Self.key("value", &encoder)
      try encoder.beginArray()
      for component in components { encoder.double(component) }
      encoder.endArray()
      encoder.endEntry()
      try encoder.endMap()
    }
  }

  private static func key(_ name: StaticString, _ encoder: inout CanonicalEncoder) throws(WireError) {
    try name.withBytes { (text) throws(WireError) in try encoder.beginEntry(key: text) }
  }
}

extension StaticString {
  /// Calls `body` with the bytes of the text, and rethrows its typed error.
  fileprivate func withBytes<E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
    try body(UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount))
  }
}
