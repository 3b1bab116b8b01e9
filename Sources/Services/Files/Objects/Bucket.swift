/// A bucket, the container of objects.
package struct Bucket: Equatable, Sendable {
  package var name: String
  /// The creation time, in microseconds since 1970.
  package var created: Int64
  /// The time of the last change, in microseconds since 1970.
  package var updated: Int64
  /// 1 on creation, incremented by each change.
  package var metageneration: Int64 = 1
  /// The storage class. Clients choose it, and it has no effect.
  package var storageClass = "STANDARD"
  /// The location. Clients choose it, and it has no effect.
  package var location = "US"
  /// Label texts by name.
  package var labels = CustomMetadata()
  /// Whether replaced and deleted objects are kept as versions, under their generation.
  package var keepsVersions = false
  /// Settings of clients that have no effect here: JSON texts by member name, returned as received.
  package var settings = CustomMetadata()

  /// The most bytes of settings and labels together.
  package static let settingsBytesMax = 64 << 10

  /// Creates a bucket with the given creation time.
  package init(name: String, created: Int64) {
    self.name = name
    self.created = created
    updated = created
  }

  /// Checks the size limits.
  /// - Throws: ``FilesError/invalid(_:)`` if a limit is exceeded.
  func check() throws(FilesError) {
    guard labels.byteCount + settings.byteCount <= Self.settingsBytesMax,
      storageClass.utf8.count + location.utf8.count <= ObjectAttributes.textBytesMax
    else { throw .invalid("The labels and settings of a bucket may total at most \(Self.settingsBytesMax) bytes.") }
  }

  /// The numbers of the fields are on disk: never reuse or renumber one.
  private enum Field {
    static let created: UInt8 = 1
    static let updated: UInt8 = 2
    static let metageneration: UInt8 = 3
    static let storageClass: UInt8 = 4
    static let location: UInt8 = 5
    static let labelName: UInt8 = 6
    static let labelValue: UInt8 = 7
    static let keepsVersions: UInt8 = 8
    static let settingName: UInt8 = 9
    static let settingValue: UInt8 = 10
  }

  var encoded: [UInt8] {
    var record = RecordWriter()
    record.put(Field.created, created)
    record.put(Field.updated, updated)
    record.put(Field.metageneration, metageneration)
    record.put(Field.storageClass, storageClass)
    record.put(Field.location, location)
    for (name, value) in labels.entries {
      record.put(Field.labelName, name)
      record.put(Field.labelValue, value)
    }
    if keepsVersions { record.put(Field.keepsVersions, 1) }
    for (name, value) in settings.entries {
      record.put(Field.settingName, name)
      record.put(Field.settingValue, value)
    }
    return record.bytes
  }

  init(name: String, record: UnsafeRawBufferPointer) {
    self.init(name: name, created: 0)
    var reader = RecordReader(record)
    var label = ""
    var setting = ""
    while let (field, value) = reader.next() {
      switch field {
      case Field.created: created = value.fieldNumber
      case Field.updated: updated = value.fieldNumber
      case Field.metageneration: metageneration = value.fieldNumber
      case Field.storageClass: storageClass = value.fieldText
      case Field.location: location = value.fieldText
      case Field.labelName: label = value.fieldText
      case Field.labelValue: labels[label] = value.fieldText
      case Field.keepsVersions: keepsVersions = value.fieldNumber == 1
      case Field.settingName: setting = value.fieldText
      case Field.settingValue: settings[setting] = value.fieldText
      default: break
      }
    }
  }
}
