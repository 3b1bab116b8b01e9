package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.Document`. Its times are ignored, as in the service.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package func document(_ value: JSONValue) throws(WireError) -> DecodedDocument {
    var document = DecodedDocument(name: [], fields: .none)
    var members = try members(of: value, "google.firestore.v1.Document")
    while let (name, content) = members.next() {
      switch name {
      case "name": document.name = [UInt8](try string(content, "name"))
      case "fields":
        path.enter("fields")
        document.fields = try fields(content)
        path.leave()
      case "createTime", "create_time", "updateTime", "update_time": break
      default: throw unknown(name)
      }
    }
    return document
  }

  /// Parses the full name of a document. Cost: low if the name has the same database as the previous one.
  /// - Throws: ``WireError/model(_:)`` with the documented text if the name is invalid.
  package func documentName(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    try names.parse(name)
  }

  /// Decodes a `google.firestore.v1.Write`.
  /// - Throws: ``WireError`` with the documented text if the message is malformed or violates a rule for writes.
  package func write(_ value: JSONValue) throws(WireError) -> AddressedWrite {
    var write = WriteMembers()
    var members = try members(of: value, "google.firestore.v1.Write")
    while let (name, content) = members.next() {
      switch name {
      case "update", "delete", "verify", "transform":
        if write.operation != nil { throw alreadySet("operation", name) }
      default: break
      }
      switch name {
      case "update":
        path.enter("update")
        let document = try document(content)
        path.leave()
        write.target = try document.name.withRawBytes { (name) throws(WireError) in try documentName(name) }
        write.operation = .update(document.fields)
      case "delete":
        write.target = try documentName(try string(content, "delete"))
        write.operation = .delete
      case "verify":
        write.target = try documentName(try string(content, "verify"))
        write.operation = .verify
      case "transform":
        path.enter("transform")
        let (target, list) = try documentTransform(content)
        path.leave()
        write.target = target
        write.operation = .transform(list)
      case "updateMask", "update_mask":
        path.enter("update_mask")
        write.mask = try writableMask(content)
        path.leave()
      case "updateTransforms", "update_transforms":
        path.enter("update_transforms")
        write.updateTransforms = try fieldTransforms(content)
        path.leave()
      case "currentDocument", "current_document":
        path.enter("current_document")
        write.precondition = try self.precondition(content)
        path.leave()
      default: throw unknown(name)
      }
    }
    return try write.write()
  }

  /// Decodes the writes of a commit after their list was entered.
  /// - Throws: ``WireError`` with the documented text if a write is malformed or violates a rule for writes.
  package func writes(_ value: JSONValue) throws(WireError) -> [AddressedWrite] {
    var elements = try elements(of: value)
    var writes: [AddressedWrite] = []
    while let element = elements.next() {
      path.element(writes.count)
      writes.append(try write(element))
    }
    return writes
  }

  /// Decodes a `google.firestore.v1.Precondition`. Without a member it is ``Precondition/none``.
  /// - Throws: ``WireError`` if the message is malformed or a time is finer than microseconds.
  package func precondition(_ value: JSONValue) throws(WireError) -> Precondition {
    var precondition = Precondition.none
    var members = try members(of: value, "google.firestore.v1.Precondition")
    while let (name, content) = members.next() {
      switch name {
      case "exists", "updateTime", "update_time":
        if precondition != .none { throw alreadySet("condition_type", name) }
      default: throw unknown(name)
      }
      if case "exists" = name {
        precondition = .exists(try bool(content, "exists"))
      } else {
        precondition = .updateTime(try alignedTimestamp(content, "update_time"))
      }
    }
    return precondition
  }

  /// Decodes a `google.firestore.v1.DocumentMask` of a read, which may contain `__name__`.
  /// - Throws: ``WireError`` if the message is malformed or a path is invalid.
  package func documentMask(_ value: JSONValue) throws(WireError) -> FieldMask {
    FieldMask(try maskPaths(value))
  }

  /// Decodes a `google.firestore.v1.DocumentMask` of a write.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/reservedFieldName(_:)`` if a path contains a reserved
  ///   name, or another ``WireError`` if the message is malformed or a path is invalid.
  package func writableMask(_ value: JSONValue) throws(WireError) -> FieldMask {
    let paths = try maskPaths(value)
    for path in paths { try WriteMembers.checkWritable(path) }
    return FieldMask(paths)
  }

  private func maskPaths(_ value: JSONValue) throws(WireError) -> [FieldPath] {
    var paths: [FieldPath] = []
    var members = try members(of: value, "google.firestore.v1.DocumentMask")
    while let (name, content) = members.next() {
      switch name {
      case "fieldPaths", "field_paths":
        path.enter("field_paths")
        var elements = try elements(of: content)
        while let element = elements.next() {
          path.element(paths.count)
          paths.append(try fieldPath(element, ""))
        }
        path.leave()
      default: throw unknown(name)
      }
    }
    return paths
  }

  /// Decodes a string field that is a field path.
  /// - Throws: ``WireError`` if the value is not a string or the path is invalid.
  package func fieldPath(_ value: JSONValue, _ field: StaticString) throws(WireError) -> FieldPath {
    let text = String(decoding: try string(value, field), as: UTF8.self)
    do throws(ModelError) {
      return try FieldPath(text)
    } catch {
      throw .model(error)
    }
  }

  // MARK: Transforms

  /// Decodes a `google.firestore.v1.DocumentTransform`.
  private func documentTransform(
    _ value: JSONValue
  ) throws(WireError) -> (address: (DatabaseID, DocumentKey), transforms: [FieldTransform]) {
    var address: (DatabaseID, DocumentKey)?
    var transforms: [FieldTransform] = []
    var members = try members(of: value, "google.firestore.v1.DocumentTransform")
    while let (name, content) = members.next() {
      switch name {
      case "document": address = try documentName(try string(content, "document"))
      case "fieldTransforms", "field_transforms":
        path.enter("field_transforms")
        transforms = try fieldTransforms(content)
        path.leave()
      default: throw unknown(name)
      }
    }
    if transforms.isEmpty { throw .model(.emptyTransformList) }
    // An unset name is the empty name, which is rejected.
    guard let address else {
      return (try documentName(UnsafeRawBufferPointer(start: nil, count: 0)), transforms)
    }
    return (address, transforms)
  }

  private func fieldTransforms(_ value: JSONValue) throws(WireError) -> [FieldTransform] {
    var elements = try elements(of: value)
    var transforms: [FieldTransform] = []
    while let element = elements.next() {
      guard transforms.count < Limits.transformsPerDocumentMax else { throw .model(.tooManyTransforms) }
      path.element(transforms.count)
      transforms.append(try fieldTransform(element))
    }
    return transforms
  }

  private func fieldTransform(_ value: JSONValue) throws(WireError) -> FieldTransform {
    var target: FieldPath?
    var kind: FieldTransform.Kind?
    var members = try members(of: value, "google.firestore.v1.DocumentTransform.FieldTransform")
    while let (name, content) = members.next() {
      if case "fieldPath" = name {
        target = try fieldPath(content, "field_path")
        continue
      }
      if case "field_path" = name {
        target = try fieldPath(content, "field_path")
        continue
      }
      guard let decoded = try transformKind(name, content) else { throw unknown(name) }
      if kind != nil { throw alreadySet("transform_type", name) }
      kind = decoded
    }
    guard let target else { throw .model(.emptyFieldPath) }
    guard let kind else { throw .model(.emptyTransform) }
    try WriteMembers.checkWritable(target)
    return FieldTransform(target, kind)
  }

  /// Decodes the transform in a member of FieldTransform, or returns `nil` if FieldTransform has no such member.
  private func transformKind(_ name: JSONName, _ content: JSONValue) throws(WireError) -> FieldTransform.Kind? {
    switch name {
    case "setToServerValue", "set_to_server_value":
      let number = try enumeration(
        content, "set_to_server_value",
        "type.googleapis.com/google.firestore.v1.DocumentTransform.FieldTransform.ServerValue",
        "SERVER_VALUE_UNSPECIFIED", "REQUEST_TIME")
      guard number == 1 else { throw .model(.emptyTransform) }
      return .requestTime
    case "increment": return .increment(try numericOperand(content, "increment"))
    case "maximum": return .maximum(try numericOperand(content, "maximum"))
    case "minimum": return .minimum(try numericOperand(content, "minimum"))
    case "appendMissingElements", "append_missing_elements":
      return .appendMissingElements(try arrayOperand(content, "append_missing_elements"))
    case "removeAllFromArray", "remove_all_from_array":
      return .removeAllFromArray(try arrayOperand(content, "remove_all_from_array"))
    default: return nil
    }
  }

  private func numericOperand(_ content: JSONValue, _ field: StaticString) throws(WireError) -> Value {
    path.enter(field)
    let operand = try value(content, .stored)
    path.leave()
    return try WriteMembers.checkNumeric(operand)
  }

  private func arrayOperand(_ content: JSONValue, _ field: StaticString) throws(WireError) -> [Value] {
    path.enter(field)
    let elements = try arrayValue(content, .stored)
    path.leave()
    return elements
  }
}
