package import DocumentModel

/// A write, with the database in its document name. The caller compares that with the database of the request.
package struct AddressedWrite: Equatable, Sendable {
  /// The database in the document name.
  package var database: DatabaseID
  package var write: Write
}

/// The members of a `google.firestore.v1.Write`.
struct WriteMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Write"

  private enum Operation {
    case update(EncodedFields)
    case delete
    /// The operation that the web and mobile SDKs send (firestore-api.md, section 2.2).
    case verify
    /// The older form of transforms, without an update.
    case transform([FieldTransform])
  }

  private var target: (database: DatabaseID, key: DocumentKey)?
  private var operation: Operation?
  private var mask: FieldMask?
  private var updateTransforms: [FieldTransform] = []
  private var precondition = Precondition.none

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "update") {
      try field.claim("operation", isSet: operation != nil)
      let document = try field.document()
      target = try document.name.withRawBytes { (name) throws(WireError) in try field.documentName(name) }
      operation = .update(document.fields)
    } else if field.matches(2, "delete") {
      try field.claim("operation", isSet: operation != nil)
      target = try field.documentName()
      operation = .delete
    } else if field.matches(3, "update_mask") {
      mask = try field.message(DocumentMask(isForWrite: true))
    } else if field.matches(4, "current_document") {
      precondition = try field.message(PreconditionMembers())
    } else if field.matches(5, "verify") {
      try field.claim("operation", isSet: operation != nil)
      target = try field.documentName()
      operation = .verify
    } else if field.matches(6, "transform") {
      try field.claim("operation", isSet: operation != nil)
      let transform = try field.message(DocumentTransform())
      target = transform.target
      operation = .transform(transform.list)
    } else if field.matches(7, "update_transforms") {
      try field.append(to: &updateTransforms)
    }
  }

  /// Returns the write that the members describe. A stand-alone transform becomes an update with an empty mask.
  /// - Throws: ``WireError/model(_:)`` if the operation is missing, or if a member is not allowed with the operation.
  func decoded() throws(WireError) -> AddressedWrite {
    guard let target, let operation else { throw .model(.emptyWrite) }
    var isUpdate = false
    let done: Write.Operation
    var transforms: [FieldTransform] = []
    switch operation {
    case .update(let fields):
      isUpdate = true
      done = .update(fields, mask: mask)
    case .delete:
      if mask != nil { throw .model(.deleteWithMask) }
      done = .delete
    case .verify:
      if precondition == .none, mask == nil { throw .model(.verifyWithoutPrecondition) }
      if mask != nil { throw .model(.maskWithoutUpdate) }
      done = .verify
    case .transform(let list):
      if mask != nil { throw .model(.maskWithoutUpdate) }
      done = .update(.none, mask: FieldMask([]))
      transforms = list
    }
    if !updateTransforms.isEmpty {
      guard isUpdate else { throw .model(.transformsWithoutUpdate) }
      transforms = updateTransforms
    }
    return AddressedWrite(
      database: target.database,
      write: Write(done, key: target.key, transforms: transforms, precondition: precondition))
  }
}

/// The members of a `google.firestore.v1.DocumentTransform`.
private struct DocumentTransform: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.DocumentTransform"
  private var target: (database: DatabaseID, key: DocumentKey)?
  private var transforms: [FieldTransform] = []

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "document") {
      target = try field.documentName()
    } else if field.matches(2, "field_transforms") {
      try field.append(to: &transforms)
    }
  }

  func decoded() throws(WireError) -> (target: (database: DatabaseID, key: DocumentKey), list: [FieldTransform]) {
    if transforms.isEmpty { throw .model(.emptyTransformList) }
    // An unset name is the empty name, which is rejected.
    guard let target else {
      var names = DocumentNames()
      return (try names.parse(UnsafeRawBufferPointer(start: nil, count: 0)), transforms)
    }
    return (target, transforms)
  }
}

extension MessageField {
  /// Appends the transforms of a document.
  fileprivate func append(to transforms: inout [FieldTransform]) throws(WireError) {
    try append(
      FieldTransformMembers(), to: &transforms, countMax: Limits.transformsPerDocumentMax, excess: .tooManyTransforms)
  }
}

/// The members of a `google.firestore.v1.DocumentTransform.FieldTransform`.
private struct FieldTransformMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.DocumentTransform.FieldTransform"
  private static let serverValues: [StaticString] = ["SERVER_VALUE_UNSPECIFIED", "REQUEST_TIME"]
  private var target: FieldPath?
  private var kind: FieldTransform.Kind?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "field_path") {
      target = try field.fieldPath()
    } else if let decoded = try Self.kind(&field) {
      try field.claim("transform_type", isSet: kind != nil)
      kind = decoded
    }
  }

  /// Decodes a member of the oneof `transform_type`, or returns `nil` if the field is not one.
  private static func kind(_ field: inout some MessageField) throws(WireError) -> FieldTransform.Kind? {
    if field.matches(2, "set_to_server_value", .varint) {
      let value = try field.enumeration(
        "type.googleapis.com/google.firestore.v1.DocumentTransform.FieldTransform.ServerValue", serverValues)
      guard value == 1 else { throw .model(.emptyTransform) }
      return .requestTime
    }
    if field.matches(3, "increment") { return .increment(try numericOperand(field)) }
    if field.matches(4, "maximum") { return .maximum(try numericOperand(field)) }
    if field.matches(5, "minimum") { return .minimum(try numericOperand(field)) }
    if field.matches(6, "append_missing_elements") { return .appendMissingElements(try field.arrayValue(.stored)) }
    if field.matches(7, "remove_all_from_array") { return .removeAllFromArray(try field.arrayValue(.stored)) }
    return nil
  }

  private static func numericOperand(_ field: some MessageField) throws(WireError) -> Value {
    let operand = try field.value(.stored)
    switch operand {
    case .integer, .double: return operand
    default: throw .model(.transformOperandNotNumeric)
    }
  }

  func decoded() throws(WireError) -> FieldTransform {
    guard let target else { throw .model(.emptyFieldPath) }
    guard let kind else { throw .model(.emptyTransform) }
    try DocumentMask.checkWritable(target)
    return FieldTransform(target, kind)
  }
}
