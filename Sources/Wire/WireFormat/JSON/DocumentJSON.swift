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
    writer.key("name")
    writer.string(document.root, slash: document.path)
    let selection = mask.map(MaskSelection.init)
    if !document.fields.isEmpty, try selection?.keepsAnything(of: document.fields) ?? true {
      writer.key("fields")
      try append(document.fields, selection, depth: 0, to: &writer)
    }
    writer.key("createTime")
    writer.timestamp(document.createTime)
    writer.key("updateTime")
    writer.timestamp(document.updateTime)
  }

  /// Appends an object with one member per field, each with a Value object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the fields are damaged. The text is then incomplete.
  package static func append(fields: EncodedMap, to writer: inout JSONWriter) throws(WireError) {
    try append(fields, nil, depth: 0, to: &writer)
  }

  /// Appends a Value object.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are damaged. The text is then incomplete.
  package static func append(_ value: EncodedValue, to writer: inout JSONWriter) throws(WireError) {
    try append(value, nil, depth: 0, to: &writer)
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
    _ map: EncodedMap, _ selection: MaskSelection?, depth: Int, to writer: inout JSONWriter
  ) throws(WireError) {
    guard depth < ValueCodec.decodingDepthMax else { throw .malformedProtobuf("value nests too deep") }
    writer.beginObject()
    var iterator = map.makeIterator()
    if var selection {
      while let entry = try iterator.next() {
        switch selection.part(of: entry.key) {
        case .nothing: break
        case .whole:
          writer.key(entry.key)
          try append(entry.value, nil, depth: depth, to: &writer)
        case .inside(let inner):
          guard let nested = try entry.value.fields, try inner.keepsAnything(of: nested) else { break }
          writer.key(entry.key)
          try append(entry.value, inner, depth: depth, to: &writer)
        }
      }
    } else {
      while let entry = try iterator.next() {
        writer.key(entry.key)
        try append(entry.value, nil, depth: depth, to: &writer)
      }
    }
    writer.endObject()
  }

  private static func append(
    _ value: EncodedValue, _ selection: MaskSelection?, depth: Int, to writer: inout JSONWriter
  ) throws(WireError) {
    writer.beginObject()
    switch try value.content {
    case .string(let text):
      writer.key("stringValue")
      writer.string(text)
    case .integer(let number):
      writer.key("integerValue")
      writer.int64(number)
    case .boolean(let flag):
      writer.key("booleanValue")
      writer.bool(flag)
    case .double(let number):
      writer.key("doubleValue")
      writer.double(number)
    case .null:
      writer.key("nullValue")
      writer.null()
    case .timestamp(let moment):
      writer.key("timestampValue")
      writer.timestamp(moment)
    case .bytes(let bytes):
      writer.key("bytesValue")
      writer.base64(bytes)
    case .reference(let name):
      writer.key("referenceValue")
      writer.string(name)
    case .geoPoint(let point):
      writer.key("geoPointValue")
      append(point, to: &writer)
    case .array(let array):
      writer.key("arrayValue")
      try append(array, depth: depth + 1, to: &writer)
    case .map(let map):
      writer.key("mapValue")
      writer.beginObject()
      if !map.isEmpty {
        writer.key("fields")
        try append(map, selection, depth: depth + 1, to: &writer)
      }
      writer.endObject()
    }
    writer.endObject()
  }

  private static func append(_ array: EncodedArray, depth: Int, to writer: inout JSONWriter) throws(WireError) {
    guard depth < ValueCodec.decodingDepthMax else { throw .malformedProtobuf("value nests too deep") }
    writer.beginObject()
    if !array.isEmpty {
      writer.key("values")
      writer.beginArray()
      var iterator = array.makeIterator()
      while let element = try iterator.next() { try append(element, nil, depth: depth, to: &writer) }
      writer.endArray()
    }
    writer.endObject()
  }

  /// Appends a LatLng object. Coordinates with the default value are omitted, as in any message.
  private static func append(_ point: GeoPoint, to writer: inout JSONWriter) {
    writer.beginObject()
    if point.latitude.bitPattern != 0 {
      writer.key("latitude")
      writer.double(point.latitude)
    }
    if point.longitude.bitPattern != 0 {
      writer.key("longitude")
      writer.double(point.longitude)
    }
    writer.endObject()
  }
}
