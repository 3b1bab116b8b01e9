package import DocumentModel
package import WireFormat

/// The fields of one document in the notation of a fixture tree, for tools that read and print single documents.
package enum FixtureFields {
  /// Parses fields such as `{"name": "Ann", "since": {"$timestamp": "2025-03-27T14:30:00Z"}}`.
  ///
  /// `source` is the name of the text in errors. A reference that is a path refers to a document of `database`.
  /// - Throws: ``FixtureTreeError`` if the text is malformed, or if the fields cannot be stored.
  package static func parse(
    _ text: [UInt8], source: String, key: DocumentKey, database: DatabaseID
  ) throws(FixtureTreeError) -> EncodedFields {
    var builder = DocumentBuilder(
      ByteSource(text, name: source), database: database, .oneValue, bufferBytes: JSONTokenizer.bufferBytesDefault)
    builder.setPath(key.path.bytes)
    try builder.expectObject("the fields of a document")
    builder.openDocument()
    builder.keys.open()
    while try builder.next() == .key {
      try builder.field(try builder.unescaped(builder.tokens.text), .fixture)
    }
    builder.keys.close()
    let document = try builder.closeDocument(key, line: 1)
    guard try builder.next() == .end else { throw builder.failure("expected the end of the fields") }
    return document.fields
  }

  /// Appends fields as an object: on one line if it fits, else over several lines.
  /// - Throws: ``WireError`` if the fields are damaged.
  package static func append(
    _ fields: EncodedFields, database: DatabaseID, to out: inout [UInt8]
  ) throws(WireError) {
    let values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    if try values.appendInline(fields, isApart: false, lineStart: out.count, to: &out) { return }
    try values.append(fields, indent: 0, to: &out)
  }

  /// Appends fields as an object on one line of any length.
  /// - Throws: ``WireError`` if the fields are damaged.
  package static func appendLine(
    _ fields: EncodedFields, database: DatabaseID, to out: inout [UInt8]
  ) throws(WireError) {
    let values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    // With the line start this far away, the length limit never applies.
    _ = try values.appendInline(fields, isApart: false, lineStart: Int.max / 2, to: &out)
  }

  /// Appends a value on one line of any length.
  /// - Throws: ``WireError`` if the value is damaged.
  package static func appendLine(_ value: Value, database: DatabaseID, to out: inout [UInt8]) throws(WireError) {
    let values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    try EncodedFields(MapValue([("value", value)])).withMap { (map) throws(WireError) in
      var iterator = map.makeIterator()
      while let entry = try iterator.next() {
        _ = try values.appendInline(entry.value.content, limit: .max, to: &out)
      }
    }
  }
}
