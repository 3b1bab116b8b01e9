import DocumentModel
import WireFormat

extension DocumentBuilder {
  /// Reads a typed value such as `{"integerValue": "1"}`, whose first token was just read.
  mutating func wireValue(_ token: JSONTokenizer.Token) throws(FixtureTreeError) {
    guard token == .objectStart, try next() == .key else {
      throw failure(
        "a document with \"name\" needs typed values such as {\"stringValue\": \"x\"}; use \"path\" for plain values")
    }
    let kind = tokens.text
    if Self.isEqual(kind, "stringValue") {
      let text = try expectString("\"stringValue\"")
      try encode { (encoder) throws(WireError) in try encoder.string(text) }
    } else if Self.isEqual(kind, "integerValue") {
      let token = try next()
      guard token == .string || token == .number, JSONNumber.check(tokens.text) == true,
        let integer = JSONNumber.integer(tokens.text)
      else { throw failure("\"integerValue\" must be a whole number that fits 64 bits") }
      encoder.integer(integer)
    } else if Self.isEqual(kind, "doubleValue") {
      try wireDouble()
    } else if Self.isEqual(kind, "booleanValue") {
      let token = try next()
      guard token == .true || token == .false else { throw failure("\"booleanValue\" must be true or false") }
      encoder.boolean(token == .true)
    } else if Self.isEqual(kind, "timestampValue") {
      try timestamp(try expectString("\"timestampValue\""))
    } else if Self.isEqual(kind, "nullValue") {
      let token = try next()
      guard token == .null || token == .string else { throw failure("\"nullValue\" must be null") }
      encoder.null()
    } else if Self.isEqual(kind, "mapValue") {
      try wireMap()
    } else if Self.isEqual(kind, "arrayValue") {
      try wireArray()
    } else if Self.isEqual(kind, "referenceValue") {
      try reference(try expectString("\"referenceValue\""))
    } else if Self.isEqual(kind, "bytesValue") {
      try bytes(try expectString("\"bytesValue\""))
    } else if Self.isEqual(kind, "geoPointValue") {
      let (latitude, longitude) = try pair("latitude", "longitude") { (builder) throws(FixtureTreeError) in
        try builder.expectDouble("a part of a geo point")
      }
      try encode { (encoder) throws(WireError) in
        try encoder.geoPoint(GeoPoint(latitude: latitude ?? 0, longitude: longitude ?? 0))
      }
    } else {
      throw failure("\(FixtureTreeError.quote(kind)) is not a value type; write one such as \"stringValue\"")
    }
    guard try next() == .objectEnd else { throw failure("a value must have exactly one type") }
  }

  private mutating func wireDouble() throws(FixtureTreeError) {
    let token = try next()
    if token == .string {
      if Self.isEqual(tokens.text, "NaN") { return encoder.double(.nan) }
      if Self.isEqual(tokens.text, "Infinity") { return encoder.double(.infinity) }
      if Self.isEqual(tokens.text, "-Infinity") { return encoder.double(-.infinity) }
    }
    guard token == .number || (token == .string && JSONNumber.check(tokens.text) != nil) else {
      throw failure("\"doubleValue\" must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }
    encoder.double(try double())
  }

  private mutating func wireMap() throws(FixtureTreeError) {
    try encode { (encoder) throws(WireError) in try encoder.beginMap() }
    try member("fields", of: "mapValue") { (builder) throws(FixtureTreeError) in
      try builder.expectObject("\"fields\"")
      try builder.fields(.wire)
    }
    try encode { (encoder) throws(WireError) in try encoder.endMap() }
  }

  private mutating func wireArray() throws(FixtureTreeError) {
    try encode { (encoder) throws(WireError) in try encoder.beginArray() }
    try member("values", of: "arrayValue") { (builder) throws(FixtureTreeError) in
      guard try builder.next() == .arrayStart else { throw builder.failure("\"values\" must be an array") }
      while true {
        let token = try builder.next()
        if token == .arrayEnd { break }
        try builder.value(token, .wire)
      }
    }
    encoder.endArray()
  }

  /// Reads an object with at most one member.
  private mutating func member(
    _ name: StaticString, of kind: StaticString, _ read: (inout DocumentBuilder) throws(FixtureTreeError) -> Void
  ) throws(FixtureTreeError) {
    try expectObject("\"\(kind)\"")
    var isRead = false
    while try next() == .key {
      guard !isRead, Self.isEqual(tokens.text, name) else {
        throw failure("\"\(kind)\" can contain only \"\(name)\", and only once")
      }
      try read(&self)
      isRead = true
    }
  }
}
