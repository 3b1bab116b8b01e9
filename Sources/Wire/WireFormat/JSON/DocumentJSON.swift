package import DocumentModel

/// The JSON form of documents, values and write results, written directly from stored bytes.
package enum DocumentJSON {
  /// Appends a Document object. `fields` is omitted if there are no fields to show.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged. The text is then incomplete.
  package static func append(
    _ document: EncodedDocument, mask: FieldMask? = nil, to writer: inout JSONWriter
  ) throws(WireError) {
    writer.beginObject()
    try appendMembers(of: document, mask: mask, to: &writer)
    writer.endObject()
  }

  /// Appends the members of a Document object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged. The text is then incomplete.
  static func appendMembers(
    of document: EncodedDocument, mask: FieldMask?, to writer: inout JSONWriter
  ) throws(WireError) {
    try writer.reserving { (json) throws(WireError) in try appendMembers(of: document, mask: mask, to: &json) }
  }

  /// Appends the members of a Document object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged. The text is then incomplete.
  static func appendMembers(
    of document: EncodedDocument, mask: FieldMask?, to json: inout ReservedJSON
  ) throws(WireError) {
    json.key("name")
    json.string(document.root, slash: document.path)
    let selection = mask.map(MaskSelection.init)
    if !document.fields.isEmpty, try selection?.keepsAnything(of: document.fields) ?? true {
      json.key("fields")
      try append(document.fields, selection, depth: 0, to: &json)
    }
    json.key("createTime")
    json.timestamp(document.createTime)
    json.key("updateTime")
    json.timestamp(document.updateTime)
  }

  /// Appends an object with one member per field, each with a Value object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged. The text is then incomplete.
  package static func append(fields: EncodedMap, to writer: inout JSONWriter) throws(WireError) {
    writer.separate()
    try writer.reserving { (json) throws(WireError) in try append(fields, nil, depth: 0, to: &json) }
  }

  /// Appends a Value object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are damaged. The text is then incomplete.
  package static func append(_ value: EncodedValue, to writer: inout JSONWriter) throws(WireError) {
    writer.separate()
    try writer.reserving { (json) throws(WireError) in try append(value, nil, depth: 0, to: &json) }
  }

  /// Appends a Value object for a tree, such as a transform result. Cost: encodes the value first.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it is nested deeper than any valid value.
  package static func append(_ value: Value, to writer: inout JSONWriter) throws(WireError) {
    var bytes: [UInt8] = []
    ValueCodec.append(value, to: &bytes)
    try bytes.withRawBytes { (buffer) throws(WireError) in try append(EncodedValue(buffer), to: &writer) }
  }

  /// Appends a WriteResult object. It is `{}` for a delete.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if a transform result is nested deeper than any valid value.
  package static func append(_ result: WriteResult, to writer: inout JSONWriter) throws(WireError) {
    writer.beginObject()
    try result.append(to: &writer)
    writer.endObject()
  }

  /// Appends a map as one object with the fields in `selection`, or with all fields if that is `nil`.
  private static func append(
    _ map: EncodedMap, _ selection: MaskSelection?, depth: Int, to json: inout ReservedJSON
  ) throws(WireError) {
    guard depth < ValueCodec.decodingDepthMax else { throw .malformedProtobuf("value nests too deep") }
    json.beginObject()
    var iterator = map.makeIterator()
    if var selection {
      while let entry = try iterator.next() {
        switch selection.part(of: entry.key) {
        case .nothing: break
        case .whole:
          json.key(entry.key)
          try append(entry.value, nil, depth: depth, to: &json)
        case .inside(let inner):
          guard let nested = try entry.value.fields, try inner.keepsAnything(of: nested) else { break }
          json.key(entry.key)
          try append(entry.value, inner, depth: depth, to: &json)
        }
      }
    } else {
      while let entry = try iterator.next() {
        json.key(entry.key)
        try append(entry.value, nil, depth: depth, to: &json)
      }
    }
    json.endObject()
  }

  private static func append(
    _ value: EncodedValue, _ selection: MaskSelection?, depth: Int, to json: inout ReservedJSON
  ) throws(WireError) {
    json.beginObject()
    switch try value.content {
    case .string(let text):
      json.key("stringValue")
      json.string(text)
    case .integer(let number):
      json.key("integerValue")
      json.int64(number)
    case .boolean(let flag):
      json.key("booleanValue")
      flag ? json.word("true") : json.word("false")
    case .double(let number):
      json.key("doubleValue")
      json.double(number)
    case .null:
      json.key("nullValue")
      json.word("null")
    case .timestamp(let moment):
      json.key("timestampValue")
      json.timestamp(moment)
    case .bytes(let bytes):
      json.key("bytesValue")
      json.base64(bytes)
    case .reference(let name):
      json.key("referenceValue")
      json.string(name)
    case .geoPoint(let point):
      json.key("geoPointValue")
      append(point, to: &json)
    case .array(let array):
      json.key("arrayValue")
      try append(array, depth: depth + 1, to: &json)
    case .map(let map):
      json.key("mapValue")
      json.beginObject()
      if !map.isEmpty {
        json.key("fields")
        try append(map, selection, depth: depth + 1, to: &json)
      }
      json.endObject()
    }
    json.endObject()
  }

  private static func append(_ array: EncodedArray, depth: Int, to json: inout ReservedJSON) throws(WireError) {
    guard depth < ValueCodec.decodingDepthMax else { throw .malformedProtobuf("value nests too deep") }
    json.beginObject()
    if !array.isEmpty {
      json.key("values")
      json.beginArray()
      var iterator = array.makeIterator()
      while let element = try iterator.next() {
        json.separate()
        try append(element, nil, depth: depth, to: &json)
      }
      json.endArray()
    }
    json.endObject()
  }

  /// Appends a LatLng object. Coordinates with the default value are omitted, as in any message.
  private static func append(_ point: GeoPoint, to json: inout ReservedJSON) {
    json.beginObject()
    if point.latitude.bitPattern != 0 {
      json.key("latitude")
      json.double(point.latitude)
    }
    if point.longitude.bitPattern != 0 {
      json.key("longitude")
      json.double(point.longitude)
    }
    json.endObject()
  }
}
