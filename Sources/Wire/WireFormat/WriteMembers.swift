package import DocumentModel

/// A document as a client sent it.
package struct DecodedDocument: Equatable, Sendable {
  /// The name as sent, or empty if the client sent none. Parse it with a decoder's `documentName(_:)` or with
  /// `ResourceName`.
  package var name: [UInt8]
  /// The fields, validated and in canonical form.
  package var fields: EncodedFields

  /// The document without name and fields.
  package static let empty = DecodedDocument(name: [], fields: .none)
}

/// A write, with the database in its document name. The caller compares that with the database of the request.
package struct AddressedWrite: Equatable, Sendable {
  /// The database in the document name.
  package var database: DatabaseID
  package var write: Write
}

/// The members of a `google.firestore.v1.Write`, decoded from JSON or protobuf.
struct WriteMembers {
  enum Operation {
    case update(EncodedFields)
    case delete
    /// The operation that the web and mobile SDKs send (firestore-api.md, section 2.2).
    case verify
    /// The older form of transforms, without an update.
    case transform([FieldTransform])
  }

  var target: (database: DatabaseID, key: DocumentKey)?
  var operation: Operation?
  var mask: FieldMask?
  var updateTransforms: [FieldTransform] = []
  var precondition = Precondition.none

  /// Returns the write that the members describe. A stand-alone transform becomes an update with an empty mask.
  /// - Throws: ``WireError/model(_:)`` if the operation is missing, or if a member is not allowed with the operation.
  func write() throws(WireError) -> AddressedWrite {
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

  /// Checks that a path can be written: no name in it is reserved, and it is not deeper than the nesting limit for
  /// values.
  static func checkWritable(_ path: FieldPath) throws(WireError) {
    for segment in path.segments where ResourceID.isReserved(segment.utf8) {
      throw .model(.reservedFieldName(segment))
    }
    // The last name is in a map one level up.
    guard path.segments.count <= Limits.nestingDepthMax + 1 else {
      throw .model(.tooDeep(field: path.segments[0]))
    }
  }

  /// Returns the operand of an increment, a maximum or a minimum after checking that it is a number.
  static func checkNumeric(_ operand: Value) throws(WireError) -> Value {
    switch operand {
    case .integer, .double: return operand
    default: throw .model(.transformOperandNotNumeric)
    }
  }
}

/// A parser for document names that remembers the latest database, because most names in a request have the same
/// one.
struct DocumentNames {
  /// The documents root of the latest name's database, followed by `/`, in UTF-8.
  private var latestRoot: [UInt8] = []
  private var latestDatabase: DatabaseID?

  /// Parses the full name of a document. Cost: low if the name has the same database as the previous one.
  /// - Throws: ``WireError/model(_:)`` with the documented text if the name is invalid.
  mutating func parse(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    if let database = latestDatabase, name.count > latestRoot.count, name.starts(with: latestRoot) {
      let path: ResourcePath
      do throws(ModelError) {
        path = try ResourcePath(checking: [UInt8](name[latestRoot.count...]))
      } catch {
        throw .model(error)
      }
      if let key = DocumentKey(path) { return (database, key) }
    }
    do throws(ModelError) {
      let (database, key) = try ResourceName.document(name)
      latestDatabase = database
      latestRoot = Array((database.documentsRoot + "/").utf8)
      return (database, key)
    } catch {
      throw .model(error)
    }
  }
}
