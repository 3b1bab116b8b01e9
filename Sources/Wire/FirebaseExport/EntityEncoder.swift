import DocumentModel
import WireFormat

/// An encoder of documents to entities (``EntitySchema``), byte for byte as the official emulator writes them, except
/// that the fields of a map ascend by their names. The emulator keeps the order of the write, or after an import uses
/// one of its own.
///
/// Values that the format lacks become maps: a vector in an array or without components, and the BSON types of the
/// enterprise edition.
struct EntityEncoder {
  private let app: [UInt8]
  private let databaseID: [UInt8]
  private let ownPrefix: [UInt8]

  /// Creates an encoder for documents of `database`.
  init(database: DatabaseID) {
    app = Array("dev~\(database.project)".utf8)
    databaseID = Self.id(database.database[...].utf8)
    ownPrefix = database.documentsRootBytes + [UInt8(ascii: "/")]
  }

  private static func id(_ database: some Collection<UInt8>) -> [UInt8] {
    database.elementsEqual(DatabaseID.defaultDatabase.utf8) ? [] : Array(database)
  }

  /// Appends the entity of a document to `out`. Cost: two passes over each map.
  /// - Throws: ``WireError`` if the fields are damaged.
  func append(_ key: DocumentKey, _ fields: EncodedFields, to out: inout [UInt8]) throws(WireError) {
    let reference = ProtobufWriter.beginMessage(EntitySchema.key, to: &out)
    ProtobufWriter.bytes(EntitySchema.Reference.app, app, to: &out)
    let path = ProtobufWriter.beginMessage(EntitySchema.Reference.path, to: &out)
    appendElements(key.path.bytes[...], isValue: false, to: &out)
    ProtobufWriter.endMessage(path, in: &out)
    if !databaseID.isEmpty { ProtobufWriter.bytes(EntitySchema.Reference.database, databaseID, to: &out) }
    ProtobufWriter.endMessage(reference, in: &out)
    try fields.withMap { (map) throws(WireError) in try appendProperties(of: map, to: &out) }
    let group = ProtobufWriter.beginMessage(EntitySchema.entityGroup, to: &out)
    appendElements(key.path.bytes[...], isValue: false, countMax: 1, to: &out)
    ProtobufWriter.endMessage(group, in: &out)
  }

  /// Appends the path elements of a path below the documents root.
  private func appendElements(
    _ path: ArraySlice<UInt8>, isValue: Bool, countMax: Int = .max, to out: inout [UInt8]
  ) {
    typealias Schema = EntitySchema.PathElement
    typealias ValueSchema = EntitySchema.ValuePathElement
    let group = isValue ? ValueSchema.group : Schema.group
    var rest = path
    var count = 0
    while count < countMax, !rest.isEmpty {
      let collection = Self.takeSegment(&rest)
      let document = Self.takeSegment(&rest)
      Self.groupTag(group, isEnd: false, to: &out)
      Self.bytes(isValue ? ValueSchema.type : Schema.type, collection, to: &out)
      if document.first == UInt8(ascii: "_"), let number = ResourceID.number(document) {
        ProtobufWriter.int64(isValue ? ValueSchema.id : Schema.id, number, to: &out)
      } else {
        Self.bytes(isValue ? ValueSchema.name : Schema.name, document, to: &out)
      }
      Self.groupTag(group, isEnd: true, to: &out)
      count += 1
    }
  }

  private static func takeSegment(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    defer { rest = rest[end...].dropFirst() }
    return rest[..<end]
  }

  private static func groupTag(_ number: Int, isEnd: Bool, to out: inout [UInt8]) {
    ProtobufWriter.varint(UInt64(number) << 3 | (isEnd ? 4 : 3), to: &out)
  }

  private static func bytes(_ number: Int, _ value: ArraySlice<UInt8>, to out: inout [UInt8]) {
    ProtobufWriter.tag(number, .lengthDelimited, to: &out)
    ProtobufWriter.varint(UInt64(value.count), to: &out)
    out.append(contentsOf: value)
  }

  // MARK: Properties

  private func appendProperties(of map: EncodedMap, to out: inout [UInt8]) throws(WireError) {
    var iterator = map.makeIterator()
    while let entry = try iterator.next() {
      guard try Self.isEmptyArray(entry.value) else { continue }
      let property = ProtobufWriter.beginMessage(EntitySchema.property, to: &out)
      Self.appendHead(EntitySchema.Meaning.emptyList, entry.key, isMultiple: false, to: &out)
      ProtobufWriter.bytes(EntitySchema.Property.value, [], to: &out)
      ProtobufWriter.endMessage(property, in: &out)
    }
    iterator = map.makeIterator()
    while let entry = try iterator.next() {
      switch try entry.value.content {
      case .array(let array): try appendElements(of: array, entry.key, isVector: false, to: &out)
      case .map(let inner):
        if let components = try inner.vectorComponents, try components.count > 0 {
          try appendElements(of: components, entry.key, isVector: true, to: &out)
        } else {
          try appendProperty(entry.key, entry.value, isMultiple: false, to: &out)
        }
      default: try appendProperty(entry.key, entry.value, isMultiple: false, to: &out)
      }
    }
  }

  private static func isEmptyArray(_ value: EncodedValue) throws(WireError) -> Bool {
    // An empty array is the tag of the array and the length 0.
    guard value.bytes.count == 2, case .array = try value.content else { return false }
    return true
  }

  private func appendElements(
    of array: EncodedArray, _ name: UnsafeRawBufferPointer, isVector: Bool, to out: inout [UInt8]
  ) throws(WireError) {
    var iterator = array.makeIterator()
    while let element = try iterator.next() {
      try appendProperty(name, element, isMultiple: true, isVector: isVector, to: &out)
    }
  }

  private static func appendHead(
    _ meaning: Int64, _ name: UnsafeRawBufferPointer, isMultiple: Bool, to out: inout [UInt8]
  ) {
    if meaning != 0 { ProtobufWriter.int64(EntitySchema.Property.meaning, meaning, to: &out) }
    ProtobufWriter.bytes(EntitySchema.Property.name, name, to: &out)
    ProtobufWriter.bool(EntitySchema.Property.multiple, isMultiple, to: &out)
  }

  private func appendProperty(
    _ name: UnsafeRawBufferPointer, _ value: EncodedValue, isMultiple: Bool, isVector: Bool = false,
    to out: inout [UInt8]
  ) throws(WireError) {
    let content = try value.content
    let property = ProtobufWriter.beginMessage(EntitySchema.rawProperty, to: &out)
    let meaning: Int64 =
      switch content {
      case .timestamp: EntitySchema.Meaning.timestamp
      case .bytes: EntitySchema.Meaning.blob
      case .geoPoint: EntitySchema.Meaning.point
      case .map: EntitySchema.Meaning.entity
      default: isVector ? EntitySchema.Meaning.vector : 0
      }
    Self.appendHead(meaning, name, isMultiple: isMultiple, to: &out)
    let start = ProtobufWriter.beginMessage(EntitySchema.Property.value, to: &out)
    switch content {
    case .null: break
    case .boolean(let value): ProtobufWriter.bool(EntitySchema.Value.boolean, value, to: &out)
    case .integer(let value): ProtobufWriter.int64(EntitySchema.Value.integer, value, to: &out)
    case .double(let value): ProtobufWriter.double(EntitySchema.Value.double, value, to: &out)
    case .timestamp(let value): ProtobufWriter.int64(EntitySchema.Value.integer, value.microseconds, to: &out)
    case .string(let text), .bytes(let text): ProtobufWriter.bytes(EntitySchema.Value.string, text, to: &out)
    case .reference(let name): appendReference(name, to: &out)
    case .geoPoint(let point):
      Self.groupTag(EntitySchema.Value.point, isEnd: false, to: &out)
      ProtobufWriter.double(EntitySchema.Value.x, point.latitude, to: &out)
      ProtobufWriter.double(EntitySchema.Value.y, point.longitude, to: &out)
      Self.groupTag(EntitySchema.Value.point, isEnd: true, to: &out)
    case .map(let map): try appendEntity(map, to: &out)
    case .array: throw .malformedProtobuf("an array is directly inside an array")
    }
    ProtobufWriter.endMessage(start, in: &out)
    ProtobufWriter.endMessage(property, in: &out)
  }

  /// The key of an entity that is a map, with its tag: an empty project and an empty path.
  private static let noKey: [UInt8] = [0x6A, 4, 0x6A, 0, 0x72, 0]
  /// The entity group of an entity that is a map, with its tag.
  private static let noGroup: [UInt8] = [0x82, 1, 0]

  private func appendEntity(_ map: EncodedMap, to out: inout [UInt8]) throws(WireError) {
    let start = ProtobufWriter.beginMessage(EntitySchema.Value.string, to: &out)
    out.append(contentsOf: Self.noKey)
    try appendProperties(of: map, to: &out)
    out.append(contentsOf: Self.noGroup)
    ProtobufWriter.endMessage(start, in: &out)
  }

  private func appendReference(_ name: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    Self.groupTag(EntitySchema.Value.reference, isEnd: false, to: &out)
    let bytes = Array(name)
    if bytes.starts(with: ownPrefix) {
      ProtobufWriter.bytes(EntitySchema.Reference.app, app, to: &out)
      appendElements(bytes[ownPrefix.count...], isValue: true, to: &out)
      if !databaseID.isEmpty { ProtobufWriter.bytes(EntitySchema.Reference.database, databaseID, to: &out) }
    } else {
      // The name has the form projects/P/databases/D/documents/…, because every write checks that.
      var rest = bytes[...]
      _ = Self.takeSegment(&rest)
      let project = Self.takeSegment(&rest)
      _ = Self.takeSegment(&rest)
      let database = Self.id(Self.takeSegment(&rest))
      _ = Self.takeSegment(&rest)
      ProtobufWriter.bytes(EntitySchema.Reference.app, Array("dev~".utf8) + project, to: &out)
      appendElements(rest, isValue: true, to: &out)
      if !database.isEmpty { ProtobufWriter.bytes(EntitySchema.Reference.database, database, to: &out) }
    }
    Self.groupTag(EntitySchema.Value.reference, isEnd: true, to: &out)
  }
}
