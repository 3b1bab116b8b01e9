import DocumentModel

extension CanonicalEncoder {
  /// Appends the fields of a Document message from a client, and skips its other members.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package mutating func appendFields(fromClient document: UnsafeRawBufferPointer) throws(WireError) {
    beginFields()
    try appendEntries(document, number: 2)
    endFields()
  }

  /// Appends a Value message from a client.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package mutating func appendValue(fromClient value: UnsafeRawBufferPointer) throws(WireError) {
    guard let member = try Self.lastMember(of: value) else { throw .model(.unsetValue) }
    switch member.number {
    case EncodedValue.Member.null: null()
    case EncodedValue.Member.boolean: boolean(member.bool)
    case EncodedValue.Member.integer: integer(member.int64)
    case EncodedValue.Member.double: double(member.double)
    case EncodedValue.Member.timestamp: timestamp(try EncodedValue.timestamp(member.bytes))
    case EncodedValue.Member.string: try string(member.bytes)
    case EncodedValue.Member.bytes: try bytes(member.bytes)
    case EncodedValue.Member.reference: try reference(member.bytes)
    case EncodedValue.Member.geoPoint: try geoPoint(try EncodedValue.geoPoint(member.bytes))
    case EncodedValue.Member.array:
      try appendArray(fromClient: member.bytes)
    case EncodedValue.Member.map:
      // The limits in beginMap and beginArray bound this recursion.
      try beginMap()
      try appendEntries(member.bytes, number: 1)
      try endMap()
    default:
      // The other members (references to fields and variables, functions, pipelines) are valid only in pipelines.
      throw .model(.unstorableValue)
    }
  }

  /// Appends an ArrayValue message from a client.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package mutating func appendArray(fromClient array: UnsafeRawBufferPointer) throws(WireError) {
    try beginArray()
    var reader = ProtobufReader(array)
    while let field = try reader.next() {
      guard field.number == 1, field.wireType == .lengthDelimited else { continue }
      try appendValue(fromClient: field.bytes)
    }
    endArray()
  }

  private mutating func appendEntries(_ message: UnsafeRawBufferPointer, number: Int) throws(WireError) {
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      guard field.number == number, field.wireType == .lengthDelimited else { continue }
      var key = UnsafeRawBufferPointer(start: nil, count: 0)
      var value = UnsafeRawBufferPointer(start: nil, count: 0)
      var entry = ProtobufReader(field.bytes)
      while let part = try entry.next() {
        switch (part.number, part.wireType) {
        case (1, .lengthDelimited): key = part.bytes
        case (2, .lengthDelimited): value = part.bytes
        default: break
        }
      }
      try beginEntry(key: key)
      try appendValue(fromClient: value)
      endEntry()
    }
  }

  /// Returns the effective member of the oneof, which is the last one on the wire. Unknown fields are skipped.
  private static func lastMember(of value: UnsafeRawBufferPointer) throws(WireError) -> ProtobufReader.Field? {
    var reader = ProtobufReader(value)
    var member: ProtobufReader.Field?
    while let field = try reader.next() {
      let expected: ProtobufReader.WireType
      switch field.number {
      case EncodedValue.Member.null, EncodedValue.Member.boolean, EncodedValue.Member.integer: expected = .varint
      case EncodedValue.Member.double: expected = .fixed64
      case EncodedValue.Member.timestamp, EncodedValue.Member.string, EncodedValue.Member.bytes,
        EncodedValue.Member.reference, EncodedValue.Member.geoPoint, EncodedValue.Member.array,
        EncodedValue.Member.map, 19...22:
        expected = .lengthDelimited
      default: continue
      }
      if field.wireType == expected { member = field }
    }
    return member
  }
}
