/// A resumable upload, as stored.
package struct UploadRecord: Equatable, Sendable {
  /// The state of an upload.
  package enum State: Equatable, Sendable {
    /// More parts may follow.
    case active
    /// The upload became an object.
    case finished(generation: Int64)
    /// The upload was cancelled, or its last part was rejected.
    case cancelled
  }

  /// The time for which an upload can be resumed, in seconds.
  package static let lifetimeSeconds = 7 * 86400
  /// The idle time after which an upload may be dropped to make room for another, in seconds.
  package static let restSeconds = 3600

  /// The ID: 128 random bits. As with Google's service, any caller that knows it can continue the upload. If the
  /// upload was authorized by rules, they are evaluated again at the end, for the sender of the last part.
  package var id: String
  /// The name of the future object.
  package var name: ObjectName
  /// The attributes of the future object.
  package var attributes: ObjectAttributes
  /// The conditions that the existing object must meet when the upload finishes.
  package var conditions = ObjectConditions()
  /// The declared checksums.
  package var declared = DeclaredChecksums()
  /// The declared length, in bytes.
  package var declaredSize: Int?
  /// The start time, in microseconds since 1970.
  package var created: Int64 = 0
  /// The number of bytes known to be on the disk.
  package var received = 0
  package var state = State.active
  /// Whether an administrator began the upload, so rules are not evaluated.
  package var isAdmin = false
  /// The owner to whose quota the upload belongs, or `nil` for an administrator's upload, which has no quota.
  package var owner: UploadOwner?
  /// The ID of the service key of the administrator who began the upload; `nil` if no key was used, or an older version
  /// of the server began the upload.
  package var keyID: String?

  /// Creates an upload with a new ID.
  package init(name: ObjectName, attributes: ObjectAttributes) {
    id = FileStore.randomID()
    self.name = name
    self.attributes = attributes
  }

  /// Returns the record to keep after the upload has ended. It contains enough to answer a repeated request.
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
    static let keyID: UInt8 = 17
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
    if let keyID { record.put(Field.keyID, keyID) }
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
      case Field.keyID: keyID = value.fieldText
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
