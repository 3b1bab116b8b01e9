/// A bucket: objects have names in one.
package struct Bucket: Equatable, Sendable {
  /// Its name.
  package var name: String
  /// When it was made, in microseconds since 1970.
  package var created: Int64
  /// When it was last changed, in microseconds since 1970.
  package var updated: Int64
  /// 1 when it is made, one more for each change.
  package var metageneration: Int64 = 1
  /// A word that clients choose.
  package var storageClass = "STANDARD"
  /// A word that clients choose.
  package var location = "US"
  /// Texts by name.
  package var labels = CustomMetadata()
  /// Whether objects that are replaced or deleted stay, under their generation.
  package var keepsVersions = false
  /// What clients said that has no effect here: JSON texts by the names of members, given back as they came.
  package var settings = CustomMetadata()

  /// Settings and labels may take this much.
  package static let settingsBytesMax = 64 << 10

  /// Makes one that is new at a time.
  package init(name: String, created: Int64) {
    self.name = name
    self.created = created
    updated = created
  }

  /// Checks the bounds.
  /// - Throws: ``FilesError/invalid(_:)``.
  func check() throws(FilesError) {
    guard labels.byteCount + settings.byteCount <= Self.settingsBytesMax,
      storageClass.utf8.count + location.utf8.count <= ObjectAttributes.textBytesMax
    else { throw .invalid("Labels and settings of a bucket may have \(Self.settingsBytesMax) bytes in all.") }
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
