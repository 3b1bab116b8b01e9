import DocumentModel
import WireFormat

extension DocumentBuilder {
  /// Reads an object such as `{"__datatype__": "timestamp", "value": …}`, whose first key was just read.
  mutating func datatypeSpecial() throws(FixtureTreeError) {
    enum Kind {
      case timestamp, geoPoint, reference, bytes
    }
    let name = try expectString("\"__datatype__\"")
    let kind: Kind
    if Self.isEqual(name, "timestamp") {
      kind = .timestamp
    } else if Self.isEqual(name, "geopoint") {
      kind = .geoPoint
    } else if Self.isEqual(name, "documentReference") {
      kind = .reference
    } else if Self.isEqual(name, "bytes") {
      kind = .bytes
    } else {
      throw failure(
        "the \"__datatype__\" \(FixtureTreeError.quote(name)) is unknown; write timestamp, geopoint, "
          + "documentReference or bytes")
    }
    guard try next() == .key, Self.isEqual(tokens.text, "value") else {
      throw failure("\"value\" must follow \"__datatype__\"")
    }
    switch kind {
    case .timestamp:
      let (seconds, nanos) = try pair("_seconds", "_nanoseconds") { (builder) throws(FixtureTreeError) in
        try builder.expectInteger("a part of a timestamp")
      }
      guard let nanos = Int32(exactly: nanos ?? 0), let moment = try? Timestamp(seconds: seconds ?? 0, nanos: nanos)
      else { throw failure("the timestamp is outside the years 1 to 9999") }
      encoder.timestamp(moment)
    case .geoPoint:
      let (latitude, longitude) = try pair("_latitude", "_longitude") { (builder) throws(FixtureTreeError) in
        try builder.expectDouble("a part of a geo point")
      }
      try encode { (encoder) throws(WireError) in
        try encoder.geoPoint(GeoPoint(latitude: latitude ?? 0, longitude: longitude ?? 0))
      }
    case .reference: try reference(try expectString("\"value\""))
    case .bytes: try bytes(try expectString("\"value\""))
    }
    guard try next() == .objectEnd else { throw failure("an object with \"__datatype__\" must end after \"value\"") }
  }

  /// Reads an object with two optional members, in any order.
  mutating func pair<Part>(
    _ first: StaticString, _ second: StaticString,
    _ read: (inout DocumentBuilder) throws(FixtureTreeError) -> Part
  ) throws(FixtureTreeError) -> (Part?, Part?) {
    try expectObject("this value")
    var parts: (Part?, Part?)
    while try next() == .key {
      if Self.isEqual(tokens.text, first) {
        parts.0 = try read(&self)
      } else if Self.isEqual(tokens.text, second) {
        parts.1 = try read(&self)
      } else {
        throw failure("expected \"\(first)\" or \"\(second)\"")
      }
    }
    return parts
  }
}
