import ContentSharing
/// The stored form of an object's metadata.
enum ObjectRecord {
  /// The numbers of the fields are on disk: never reuse or renumber one.
  private enum Field {
    static let generation: UInt8 = 1
    static let metageneration: UInt8 = 2
    static let created: UInt8 = 3
    static let updated: UInt8 = 4
    static let content: UInt8 = 5
    static let componentCount: UInt8 = 6
    static let attributes: UInt8 = 7
    static let deleted: UInt8 = 8
  }

  static func encode(_ object: StoredObject) -> [UInt8] {
    var record = RecordWriter()
    record.put(Field.generation, object.generation)
    record.put(Field.metageneration, object.metageneration)
    record.put(Field.created, object.created)
    record.put(Field.updated, object.updated)
    record.put(Field.content, encode(object.content))
    if object.componentCount > 0 { record.put(Field.componentCount, Int64(object.componentCount)) }
    record.put(Field.attributes, AttributesRecord.encode(object.attributes))
    if let deleted = object.deleted { record.put(Field.deleted, deleted) }
    return record.bytes
  }

  /// Decodes a record. Returns `nil` if it is damaged.
  static func decode(_ bytes: UnsafeRawBufferPointer, _ name: ObjectName) -> StoredObject? {
    var reader = RecordReader(bytes)
    var content: ContentSummary?
    var object = StoredObject(
      name: name, generation: 0, created: 0, updated: 0,
      content: ContentSummary(size: 0, crc32c: 0, md5: [], digest: ContentDigest(bytes: [])),
      attributes: ObjectAttributes())
    while let (field, value) = reader.next() {
      switch field {
      case Field.generation: object.generation = value.fieldNumber
      case Field.metageneration: object.metageneration = value.fieldNumber
      case Field.created: object.created = value.fieldNumber
      case Field.updated: object.updated = value.fieldNumber
      case Field.content: content = decode(value)
      case Field.componentCount: object.componentCount = Int(value.fieldNumber)
      case Field.attributes: object.attributes = AttributesRecord.decode(value)
      case Field.deleted: object.deleted = value.fieldNumber
      default: break
      }
    }
    guard let content, !reader.isDamaged else { return nil }
    object.content = content
    return object
  }

  /// The layout is the digest in 32 bytes, the MD5 in 16, the CRC in 4, and the size in 8.
  private static func encode(_ content: ContentSummary) -> [UInt8] {
    content.digest.bytes + content.md5 + content.crc32cBytes
      + (0..<8).map { UInt8(truncatingIfNeeded: content.size >> (56 - 8 * $0)) }
  }

  private static func decode(_ bytes: UnsafeRawBufferPointer) -> ContentSummary? {
    guard bytes.count == 60 else { return nil }
    let crc = UnsafeRawBufferPointer(rebasing: bytes[48..<52]).fieldNumber
    let size = UnsafeRawBufferPointer(rebasing: bytes[52..<60]).fieldNumber
    guard size >= 0 else { return nil }
    return ContentSummary(
      size: Int(size), crc32c: UInt32(truncatingIfNeeded: crc), md5: Array(bytes[32..<48]),
      digest: ContentDigest(bytes: Array(bytes[..<32])))
  }
}

/// The stored form of an object's attributes.
enum AttributesRecord {
  /// The numbers of the fields are on disk: never reuse or renumber one.
  private enum Field {
    static let contentType: UInt8 = 1
    static let contentEncoding: UInt8 = 2
    static let contentDisposition: UInt8 = 3
    static let contentLanguage: UInt8 = 4
    static let cacheControl: UInt8 = 5
    static let customTime: UInt8 = 6
    static let storageClass: UInt8 = 7
    static let metadataName: UInt8 = 8
    static let metadataValue: UInt8 = 9
  }

  static func encode(_ attributes: ObjectAttributes) -> [UInt8] {
    var record = RecordWriter()
    record.put(Field.contentType, attributes.contentType)
    record.put(Field.contentEncoding, attributes.contentEncoding)
    record.put(Field.contentDisposition, attributes.contentDisposition)
    record.put(Field.contentLanguage, attributes.contentLanguage)
    record.put(Field.cacheControl, attributes.cacheControl)
    record.put(Field.customTime, attributes.customTime)
    record.put(Field.storageClass, attributes.storageClass)
    for (name, value) in attributes.metadata.entries {
      record.put(Field.metadataName, name)
      record.put(Field.metadataValue, value)
    }
    return record.bytes
  }

  static func decode(_ bytes: UnsafeRawBufferPointer) -> ObjectAttributes {
    var reader = RecordReader(bytes)
    var attributes = ObjectAttributes()
    var name = ""
    while let (field, value) = reader.next() {
      switch field {
      case Field.contentType: attributes.contentType = value.fieldText
      case Field.contentEncoding: attributes.contentEncoding = value.fieldText
      case Field.contentDisposition: attributes.contentDisposition = value.fieldText
      case Field.contentLanguage: attributes.contentLanguage = value.fieldText
      case Field.cacheControl: attributes.cacheControl = value.fieldText
      case Field.customTime: attributes.customTime = value.fieldText
      case Field.storageClass: attributes.storageClass = value.fieldText
      case Field.metadataName: name = value.fieldText
      case Field.metadataValue: attributes.metadata[name] = value.fieldText
      default: break
      }
    }
    return attributes
  }
}
