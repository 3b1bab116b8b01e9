package import DocumentModel

/// A document as a client sent it.
package struct DecodedDocument: Equatable, Sendable {
  /// The name as sent; empty when it was not. Parse it with a decoder's `documentName(_:)` or `ResourceName`.
  package var name: [UInt8]
  /// The fields, checked and canonical.
  package var fields: EncodedFields

  /// A document without name and fields.
  package static let empty = DecodedDocument(name: [], fields: .none)
}

/// A write and the database that its document name gives, which the caller compares with the request's.
package struct AddressedWrite: Equatable, Sendable {
  /// The database of the document name.
  package var database: DatabaseID
  /// What is to be done.
  package var write: Write
}

/// The members of a `google.firestore.v1.Write` as they were read from either wire.
struct WriteMembers {
  enum Operation {
    case update(EncodedFields)
    case delete
    /// The member that the web and mobile SDKs send (firestore-api.md, section 2.2).
    case verify
    /// The older stand-alone form of transforms.
    case transform([FieldTransform])
  }

  var target: (database: DatabaseID, key: DocumentKey)?
  var operation: Operation?
  var mask: FieldMask?
  var updateTransforms: [FieldTransform] = []
  var precondition = Precondition.none

  /// The write that the members make; a stand-alone transform becomes an update with an empty mask.
  /// - Throws: ``WireError/model(_:)``: there is no operation, or members that do not go with it.
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

  /// Checks that a path may be written: no reserved name in it, and no deeper than values may nest.
  static func checkWritable(_ path: FieldPath) throws(WireError) {
    for segment in path.segments where ResourceID.isReserved(segment.utf8) {
      throw .model(.reservedFieldName(segment))
    }
    // The last name lies in a map of one level less.
    guard path.segments.count <= Limits.nestingDepthMax + 1 else {
      throw .model(.tooDeep(field: path.segments[0]))
    }
  }

  /// The operand of an increment, a maximum or a minimum.
  static func checkNumeric(_ operand: Value) throws(WireError) -> Value {
    switch operand {
    case .integer, .double: return operand
    default: throw .model(.transformOperandNotNumeric)
    }
  }
}

/// Parses document names, most of which lie in the same database as the one before.
struct DocumentNames {
  /// The database of the latest name, with its documents root and `/` as bytes.
  private var latestRoot: [UInt8] = []
  private var latestDatabase: DatabaseID?

  /// Parses the full name of a document. Cost: little when it lies in the same database as the one before.
  /// - Throws: ``WireError/model(_:)`` with the documented text.
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
