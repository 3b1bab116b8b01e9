/// An upload that comes in parts and may be resumed, as it is stored.
package struct UploadRecord: Equatable, Sendable {
  /// How far an upload has come.
  package enum State: Equatable, Sendable {
    /// Parts may follow.
    case active
    /// It has become an object.
    case finished(generation: Int64)
    /// It was given up, or its last part was refused.
    case cancelled
  }

  /// Seconds for which an upload may be resumed.
  package static let lifetimeSeconds = 7 * 86400
  /// Seconds without a part after which an upload may be given up for another, where there are too many.
  package static let restSeconds = 3600

  /// What names it: 128 bits that nobody can guess. Who knows it may go on with it, as with Google's service; one who
  /// is let in by rules is judged by them again at the end, as the sender of the last part.
  package var id: String
  /// What it is to become.
  package var name: ObjectName
  /// What was said of the object.
  package var attributes: ObjectAttributes
  /// What the object before must be when it ends.
  package var conditions = ObjectConditions()
  /// The checksums that were announced.
  package var declared = DeclaredChecksums()
  /// The length that was announced.
  package var declaredSize: Int?
  /// When it began, in microseconds since 1970.
  package var created: Int64 = 0
  /// Bytes known to be on the disk.
  package var received = 0
  /// How far it has come.
  package var state = State.active
  /// Whether rules need not be asked: an administrator began it.
  package var isAdmin = false
  /// Whose share of the uploads under way it takes; `nil` for an administrator's, which have no bound of their own.
  package var owner: UploadOwner?

  /// An upload that has not begun.
  package init(name: ObjectName, attributes: ObjectAttributes) {
    id = FileStore.randomID()
    self.name = name
    self.attributes = attributes
  }

  /// What is kept of it once it is over: enough to answer who asks again.
  func ended(_ state: State, received: Int) -> UploadRecord {
    var record = UploadRecord(name: name, attributes: ObjectAttributes())
    record.id = id
    record.created = created
    record.state = state
    record.received = received
    record.isAdmin = isAdmin
    return record
  }

  /// The numbers of the fields are on disk: never reuse or renumber one.
  private enum Field {
    static let bucket: UInt8 = 1
    static let name: UInt8 = 2
    static let attributes: UInt8 = 3
    static let created: UInt8 = 4
    static let received: UInt8 = 5
    static let state: UInt8 = 6
    static let generation: UInt8 = 7
    static let declaredSize: UInt8 = 8
    static let crc32c: UInt8 = 9
    static let md5: UInt8 = 10
    static let isAdmin: UInt8 = 11
    static let generationMatch: UInt8 = 12
    static let generationNotMatch: UInt8 = 13
    static let metagenerationMatch: UInt8 = 14
    static let metagenerationNotMatch: UInt8 = 15
    static let owner: UInt8 = 16
  }

  var encoded: [UInt8] {
    var record = RecordWriter()
    record.put(Field.bucket, name.bucket)
    record.put(Field.name, name.name)
    record.put(Field.attributes, AttributesRecord.encode(attributes))
    record.put(Field.created, created)
    record.put(Field.received, Int64(received))
    switch state {
    case .active: record.put(Field.state, 0)
    case .finished(let generation):
      record.put(Field.state, 1)
      record.put(Field.generation, generation)
    case .cancelled: record.put(Field.state, 2)
    }
    if let declaredSize { record.put(Field.declaredSize, Int64(declaredSize)) }
    record.put(Field.crc32c, declared.crc32c)
    record.put(Field.md5, declared.md5)
    if isAdmin { record.put(Field.isAdmin, 1) }
    if let number = conditions.generationMatch { record.put(Field.generationMatch, number) }
    if let number = conditions.generationNotMatch { record.put(Field.generationNotMatch, number) }
    if let number = conditions.metagenerationMatch { record.put(Field.metagenerationMatch, number) }
    if let number = conditions.metagenerationNotMatch { record.put(Field.metagenerationNotMatch, number) }
    if let owner { record.put(Field.owner, owner.bytes) }
    return record.bytes
  }

  init(id: String, record: UnsafeRawBufferPointer) {
    self.id = id
    attributes = ObjectAttributes()
    var bucket = ""
    var name = ""
    var stateNumber: Int64 = 0
    var generation: Int64 = 0
    var reader = RecordReader(record)
    while let (field, value) = reader.next() {
      switch field {
      case Field.bucket: bucket = value.fieldText
      case Field.name: name = value.fieldText
      case Field.attributes: attributes = AttributesRecord.decode(value)
      case Field.created: created = value.fieldNumber
      case Field.received: received = max(0, Int(value.fieldNumber))
      case Field.state: stateNumber = value.fieldNumber
      case Field.generation: generation = value.fieldNumber
      case Field.declaredSize: declaredSize = max(0, Int(value.fieldNumber))
      case Field.crc32c: declared.crc32c = value.fieldText
      case Field.md5: declared.md5 = value.fieldText
      case Field.isAdmin: isAdmin = value.fieldNumber == 1
      case Field.generationMatch: conditions.generationMatch = value.fieldNumber
      case Field.generationNotMatch: conditions.generationNotMatch = value.fieldNumber
      case Field.metagenerationMatch: conditions.metagenerationMatch = value.fieldNumber
      case Field.metagenerationNotMatch: conditions.metagenerationNotMatch = value.fieldNumber
      case Field.owner: owner = UploadOwner(bytes: Array(value))
      default: break
      }
    }
    self.name = ObjectName(bucket: bucket, name: name)
    state =
      switch stateNumber {
      case 0: .active
      case 1: .finished(generation: generation)
      default: .cancelled
      }
  }
}
