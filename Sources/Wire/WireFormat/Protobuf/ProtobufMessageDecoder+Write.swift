import DocumentModel

extension ProtobufMessageDecoder {
  /// Decodes a `google.firestore.v1.Write`.
  /// - Throws: ``WireError`` with the documented text if the message is malformed or violates a rule for writes.
  package func write(_ message: UnsafeRawBufferPointer) throws(WireError) -> AddressedWrite {
    var write = WriteMembers()
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      guard field.wireType == .lengthDelimited else { continue }
      switch field.number {
      case 1:
        let document = try document(field.bytes)
        write.target = try document.name.withRawBytes { (name) throws(WireError) in try documentName(name) }
        write.operation = .update(document.fields)
      case 2:
        write.target = try documentName(try Self.text(field))
        write.operation = .delete
      case 3: write.mask = try writableMask(field.bytes)
      case 4: write.precondition = try precondition(field.bytes)
      case 5:
        write.target = try documentName(try Self.text(field))
        write.operation = .verify
      case 6:
        let (target, transforms) = try documentTransform(field.bytes)
        write.target = target
        write.operation = .transform(transforms)
      case 7:
        try Self.checkCount(write.updateTransforms)
        write.updateTransforms.append(try fieldTransform(field.bytes))
      default: break
      }
    }
    return try write.write()
  }

  /// Decodes a `google.firestore.v1.DocumentTransform`.
  private func documentTransform(
    _ message: UnsafeRawBufferPointer
  ) throws(WireError) -> (target: (DatabaseID, DocumentKey), transforms: [FieldTransform]) {
    var name = UnsafeRawBufferPointer(start: nil, count: 0)
    var transforms: [FieldTransform] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): name = try Self.text(field)
      case (2, .lengthDelimited):
        try Self.checkCount(transforms)
        transforms.append(try fieldTransform(field.bytes))
      default: break
      }
    }
    if transforms.isEmpty { throw .model(.emptyTransformList) }
    return (try documentName(name), transforms)
  }

  private static func checkCount(_ transforms: [FieldTransform]) throws(WireError) {
    guard transforms.count < Limits.transformsPerDocumentMax else { throw .model(.tooManyTransforms) }
  }

  /// Decodes a `google.firestore.v1.DocumentTransform.FieldTransform`.
  private func fieldTransform(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldTransform {
    var target: FieldPath?
    var kind: FieldTransform.Kind?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): target = try Self.fieldPath(field)
      case (2, .varint):
        guard field.int32 == 1 else { throw .model(.emptyTransform) }
        kind = .requestTime
      case (3, .lengthDelimited): kind = .increment(try numericOperand(field.bytes))
      case (4, .lengthDelimited): kind = .maximum(try numericOperand(field.bytes))
      case (5, .lengthDelimited): kind = .minimum(try numericOperand(field.bytes))
      case (6, .lengthDelimited): kind = .appendMissingElements(try arrayOperand(field.bytes))
      case (7, .lengthDelimited): kind = .removeAllFromArray(try arrayOperand(field.bytes))
      default: break
      }
    }
    guard let target else { throw .model(.emptyFieldPath) }
    guard let kind else { throw .model(.emptyTransform) }
    try WriteMembers.checkWritable(target)
    return FieldTransform(target, kind)
  }

  private func numericOperand(_ message: UnsafeRawBufferPointer) throws(WireError) -> Value {
    try WriteMembers.checkNumeric(try value(message, .stored))
  }

  /// Decodes the elements of a `google.firestore.v1.ArrayValue` to trees.
  private func arrayOperand(_ message: UnsafeRawBufferPointer) throws(WireError) -> [Value] {
    encoder.reset(.stored, edition)
    try encoder.appendArray(fromClient: message)
    guard case .array(let elements) = try ValueCodec.decoded(encoder.bytes) else { return [] }
    return elements
  }
}
