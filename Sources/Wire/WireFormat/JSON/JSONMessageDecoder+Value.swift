package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.Value` to a tree.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule that applies to `purpose`.
  package func value(_ value: JSONValue, _ purpose: CanonicalEncoder.Purpose) throws(WireError) -> Value {
    encoder.reset(purpose, edition)
    try appendValue(value)
    return try ValueCodec.decoded(encoder.bytes)
  }

  /// Decodes the elements of a `google.firestore.v1.ArrayValue` to trees.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule that applies to `purpose`.
  package func arrayValue(_ value: JSONValue, _ purpose: CanonicalEncoder.Purpose) throws(WireError) -> [Value] {
    encoder.reset(purpose, edition)
    try appendArray(value)
    guard case .array(let elements) = try ValueCodec.decoded(encoder.bytes) else { return [] }
    return elements
  }

  /// Decodes a `map<string, Value>` field to stored fields after the field was entered. Builds no tree.
  /// - Throws: ``WireError`` if the message is malformed or the values cannot be stored.
  package func fields(_ value: JSONValue) throws(WireError) -> EncodedFields {
    encoder.reset(.stored, edition)
    encoder.beginFields()
    try appendEntries(value)
    encoder.endFields()
    return EncodedFields(canonical: encoder.bytes.withUnsafeBytes { [UInt8]($0) })
  }

  /// Appends a Value message.
  private func appendValue(_ value: JSONValue) throws(WireError) {
    var members = try allMembers(of: value, "google.firestore.v1.Value")
    var isSet = false
    while let (name, content) = members.next() {
      if content.isNull {
        // A JSON null means that a member is not set, except for the null value.
        guard try Self.isNullValue(name, in: self) else { continue }
      }
      if isSet, Self.isMember(name) { throw alreadySet("value_type", name) }
      isSet = true
      switch name {
      case "stringValue", "string_value": try encoder.string(try string(content, "string_value"))
      case "integerValue", "integer_value": encoder.integer(try int64(content, "integer_value"))
      case "mapValue", "map_value": try appendMap(content)
      case "booleanValue", "boolean_value": encoder.boolean(try bool(content, "boolean_value"))
      case "doubleValue", "double_value": encoder.double(try double(content, "double_value"))
      case "timestampValue", "timestamp_value": encoder.timestamp(try timestamp(content, "timestamp_value"))
      case "arrayValue", "array_value":
        path.enter("array_value")
        try appendArray(content)
        path.leave()
      case "nullValue", "null_value":
        if !content.isNull {
          _ = try enumeration(
            content, "null_value", "type.googleapis.com/google.protobuf.NullValue", ["NULL_VALUE"])
        }
        encoder.null()
      case "referenceValue", "reference_value": try encoder.reference(try string(content, "reference_value"))
      case "bytesValue", "bytes_value":
        let text = try bytesText(content, "bytes_value")
        let isValid = try encoder.bytes(maximumCount: Base64.decodedCountMax(text.count)) { buffer in
          Base64.decode(text, into: buffer)
        }
        guard isValid else { throw badBase64(text, "bytes_value") }
      case "geoPointValue", "geo_point_value": try encoder.geoPoint(try geoPoint(content))
      default:
        guard Self.isMember(name) else { throw unknown(name) }
        // The other members (references to fields and variables, functions, pipelines) are valid only in pipelines.
        throw .model(.unstorableValue)
      }
    }
    guard isSet else { throw .model(.unsetValue) }
  }

  private func appendMap(_ value: JSONValue) throws(WireError) {
    try encoder.beginMap()
    path.enter("map_value")
    var members = try members(of: value, "google.firestore.v1.MapValue")
    while let (name, content) = members.next() {
      switch name {
      case "fields":
        path.enter("fields")
        try appendEntries(content)
        path.leave()
      default: throw unknown(name)
      }
    }
    path.leave()
    try encoder.endMap()
  }

  private func appendArray(_ value: JSONValue) throws(WireError) {
    try encoder.beginArray()
    var members = try members(of: value, "google.firestore.v1.ArrayValue")
    while let (name, content) = members.next() {
      switch name {
      case "values":
        path.enter("values")
        var elements = try elements(of: content)
        var index = 0
        while let element = elements.next() {
          path.element(index)
          try appendValue(element)
          index += 1
        }
        path.leave()
      default: throw unknown(name)
      }
    }
    encoder.endArray()
  }

  /// Appends the entries of a map field after the field was entered.
  private func appendEntries(_ value: JSONValue) throws(WireError) {
    guard case .object(var entries) = value.kind else {
      throw .invalidValue(path: path.text(), type: "map", text: "an object is expected")
    }
    var index = 0
    while let (key, content) = entries.next() {
      path.entry(index)
      try encoder.beginEntry(key: key.bytes)
      try appendValue(content)
      encoder.endEntry()
      index += 1
    }
  }

  private func geoPoint(_ value: JSONValue) throws(WireError) -> GeoPoint {
    path.enter("geo_point_value")
    var point = GeoPoint(latitude: 0, longitude: 0)
    var members = try members(of: value, "google.type.LatLng")
    while let (name, content) = members.next() {
      switch name {
      case "latitude": point.latitude = try double(content, "latitude")
      case "longitude": point.longitude = try double(content, "longitude")
      default: throw unknown(name)
      }
    }
    path.leave()
    return point
  }

  private static func isNullValue(_ name: JSONName, in decoder: JSONMessageDecoder) throws(WireError) -> Bool {
    switch name {
    case "nullValue", "null_value": return true
    default:
      guard isMember(name) else { throw decoder.unknown(name) }
      return false
    }
  }

  /// Returns whether Value's oneof has a member with this name.
  private static func isMember(_ name: JSONName) -> Bool {
    switch name {
    case "nullValue", "null_value", "booleanValue", "boolean_value", "integerValue", "integer_value", "doubleValue",
      "double_value", "timestampValue", "timestamp_value", "stringValue", "string_value", "bytesValue", "bytes_value",
      "referenceValue", "reference_value", "geoPointValue", "geo_point_value", "arrayValue", "array_value",
      "mapValue", "map_value", "fieldReferenceValue", "field_reference_value", "variableReferenceValue",
      "variable_reference_value", "functionValue", "function_value", "pipelineValue", "pipeline_value":
      true
    default: false
    }
  }
}
