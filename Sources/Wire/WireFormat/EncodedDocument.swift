package import DocumentModel

/// A stored document that borrows its bytes. It is valid as long as they are.
package struct EncodedDocument {
  /// The name of the documents root, `projects/{p}/databases/{d}/documents`, in UTF-8.
  package let root: UnsafeRawBufferPointer
  /// The path below the root, in UTF-8.
  package let path: UnsafeRawBufferPointer
  package let fields: EncodedMap
  package let createTime: Timestamp
  /// The time of the last change.
  package let updateTime: Timestamp

  /// Creates a document from its parts. `fields` are the bytes of stored fields.
  package init(
    root: UnsafeRawBufferPointer, path: UnsafeRawBufferPointer, fields: UnsafeRawBufferPointer,
    createTime: Timestamp, updateTime: Timestamp
  ) {
    self.root = root
    self.path = path
    self.fields = EncodedMap(documentFields: fields)
    self.createTime = createTime
    self.updateTime = updateTime
  }
}

/// The encoding of documents as `google.firestore.v1.Document` messages.
package enum DocumentProtobuf {
  /// Appends the content of a Document message. Without a mask, the fields are copied unchanged.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if a mask is given and the fields are damaged.
  package static func append(
    _ document: EncodedDocument, mask: FieldMask? = nil, to out: inout [UInt8]
  ) throws(WireError) {
    ProtobufWriter.tag(1, .lengthDelimited, to: &out)
    ProtobufWriter.varint(UInt64(document.root.count + 1 + document.path.count), to: &out)
    out.append(contentsOf: document.root)
    out.append(UInt8(ascii: "/"))
    out.append(contentsOf: document.path)
    if let mask {
      try append(document.fields, MaskSelection(mask), to: &out)
    } else {
      out.append(contentsOf: document.fields.bytes)
    }
    ProtobufWriter.timestamp(3, document.createTime, to: &out)
    ProtobufWriter.timestamp(4, document.updateTime, to: &out)
  }

  /// Returns the fields that a mask selects. Cost: one pass over the fields.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not stored fields.
  package static func fields(
    _ fields: UnsafeRawBufferPointer, keptBy mask: FieldMask
  ) throws(WireError) -> EncodedFields {
    var kept: [UInt8] = []
    try append(EncodedMap(documentFields: fields), MaskSelection(mask), to: &kept)
    return EncodedFields(canonical: kept)
  }

  /// Appends the entries of a map that a selection contains.
  ///
  /// The recursion is at most as deep as the paths of the mask, whose length is limited.
  private static func append(
    _ map: EncodedMap, _ selection: MaskSelection, to out: inout [UInt8]
  ) throws(WireError) {
    var selection = selection
    var iterator = map.makeIterator()
    var start = iterator.position
    while let entry = try iterator.next() {
      defer { start = iterator.position }
      switch selection.part(of: entry.key) {
      case .nothing: break
      case .whole: out.append(contentsOf: UnsafeRawBufferPointer(rebasing: map.bytes[start..<iterator.position]))
      case .inside(let inner):
        guard let nested = try entry.value.fields, try inner.keepsAnything(of: nested) else { break }
        out.append(map.entryTag)
        out.append(0)
        let entryStart = out.count
        ProtobufWriter.bytes(1, entry.key, to: &out)
        let valueStart = ProtobufWriter.beginMessage(2, to: &out)
        let mapStart = ProtobufWriter.beginMessage(EncodedValue.Member.map, to: &out)
        try append(nested, inner, to: &out)
        ProtobufWriter.endMessage(mapStart, in: &out)
        ProtobufWriter.endMessage(valueStart, in: &out)
        ProtobufWriter.endMessage(entryStart, in: &out)
      }
    }
  }
}
