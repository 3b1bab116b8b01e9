import DocumentModel
import FixtureTree
import WireFormat

/// A decoder of entities (``EntitySchema``) to documents of one database. It checks every rule for writes.
///
/// A reference to the database that the entity itself is from becomes a reference to the target database. Other
/// references are kept. The input is untrusted. Reuse one decoder: its buffers keep their capacity.
struct EntityDecoder: ~Copyable {
  /// The references in the documents decoded so far.
  private(set) var references = ReferenceCounts()

  private let documentsRoot: [UInt8]
  private var encoder = CanonicalEncoder()
  /// The properties of the open maps. Those of the innermost map are last.
  private var properties: [Property] = []
  private var path: [UInt8] = []
  private var name: [UInt8] = []
  /// The project and the database of the entity's key, as the export writes them.
  private var app: [UInt8] = []
  private var databaseID: [UInt8] = []
  private var isOwnDatabase = false
  private var fieldNames: [UnsafeRawBufferPointer] = []

  /// A property, whose name and value point into the record.
  private struct Property {
    var name = UnsafeRawBufferPointer(start: nil, count: 0)
    var value = UnsafeRawBufferPointer(start: nil, count: 0)
    var meaning: Int64 = 0
    var isMultiple = false
  }

  /// Creates a decoder for documents that go to `database`.
  init(database: DatabaseID) { documentsRoot = database.documentsRootBytes }

  /// Decodes an entity, which is the record of this number in its file.
  /// - Throws: ``RecordError`` if it is malformed, or cannot be a document.
  mutating func document(_ entity: UnsafeRawBufferPointer, record: Int = 0) throws(RecordError) -> FixtureDocument {
    path.removeAll(keepingCapacity: true)
    fieldNames.removeAll(keepingCapacity: true)
    properties.removeAll(keepingCapacity: true)
    encoder.reset()
    do throws(WireError) {
      try readKey(entity)
      let key = try documentKey()
      encoder.beginFields()
      try readProperties(entity)
      encoder.endFields()
      // The copy is deliberate: the encoder keeps its buffer.
      return FixtureDocument(
        key: key, fields: EncodedFields(canonical: encoder.bytes.withUnsafeBytes { [UInt8]($0) }), line: record)
    } catch {
      let message =
        switch error {
        case .model(let model): model.description
        case .malformedProtobuf(let reason): reason
        default: error.description
        }
      throw RecordError(
        path: String(decoding: path, as: UTF8.self),
        field: fieldNames.map { FieldPath.quote(String(decoding: $0, as: UTF8.self)) }.joined(separator: "."),
        message: message)
    }
  }

  // MARK: The key

  private mutating func readKey(_ entity: UnsafeRawBufferPointer) throws(WireError) {
    var reader = ProtobufReader(entity)
    var hasKey = false
    app.removeAll(keepingCapacity: true)
    databaseID.removeAll(keepingCapacity: true)
    while let field = try reader.next() {
      guard field.number == EntitySchema.key, field.wireType == .lengthDelimited else { continue }
      hasKey = true
      var parts = ProtobufReader(field.bytes)
      while let part = try parts.next() {
        guard part.wireType == .lengthDelimited else { continue }
        switch part.number {
        case EntitySchema.Reference.app: app.append(raw: part.bytes)
        case EntitySchema.Reference.database: databaseID.append(raw: part.bytes)
        case EntitySchema.Reference.namespace where !part.bytes.isEmpty: throw Self.namespace(part.bytes)
        case EntitySchema.Reference.path: try appendPath(part.bytes)
        default: break
        }
      }
    }
    guard hasKey else { throw .malformedProtobuf("the record is not an entity: it has no key") }
    name.removeAll(keepingCapacity: true)
    appendRoot(project: Self.project(app[...]), database: databaseID[...])
    isOwnDatabase = name == documentsRoot
  }

  /// Appends the path of a key, such as `users/ann`, to `path`.
  private mutating func appendPath(_ elements: UnsafeRawBufferPointer) throws(WireError) {
    var reader = ProtobufReader(elements)
    while let element = try reader.nextOrGroup() {
      guard element.number == EntitySchema.PathElement.group, element.wireType == .lengthDelimited else { continue }
      try Self.append(
        element.bytes, type: EntitySchema.PathElement.type, id: EntitySchema.PathElement.id,
        name: EntitySchema.PathElement.name, to: &path)
    }
  }

  private func documentKey() throws(WireError) -> DocumentKey {
    let checked: ResourcePath
    do throws(ModelError) { checked = try ResourcePath(checking: path) } catch { throw .model(error) }
    guard let key = DocumentKey(checked) else {
      throw .malformedProtobuf("the key of the entity is not the path of a document")
    }
    return key
  }

  /// Appends the collection ID and the document ID of a path element to `path`, each after a slash unless it is first.
  private static func append(
    _ element: UnsafeRawBufferPointer, type: Int, id: Int, name: Int, to path: inout [UInt8]
  ) throws(WireError) {
    var parts = ProtobufReader(element)
    var collection = UnsafeRawBufferPointer(start: nil, count: 0)
    var document = collection
    var number: Int64?
    while let part = try parts.next() {
      switch (part.number, part.wireType) {
      case (type, .lengthDelimited): collection = part.bytes
      case (name, .lengthDelimited): document = part.bytes
      case (id, .varint): number = part.int64
      default: break
      }
    }
    for part in [collection, document] where part.contains(UInt8(ascii: "/")) {
      throw .malformedProtobuf(
        "the ID \"\(String(decoding: part, as: UTF8.self))\" contains \"/\", which Firestore does not allow")
    }
    if !path.isEmpty { path.append(UInt8(ascii: "/")) }
    path.append(raw: collection)
    path.append(UInt8(ascii: "/"))
    if let number { path.append(contentsOf: "__id\(number)__".utf8) } else { path.append(raw: document) }
  }

  /// Returns the project of an `app`, such as `my-app` of `s~my-app`.
  private static func project(_ app: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let mark = app.firstIndex(of: UInt8(ascii: "~")) else { return app }
    return app[(mark + 1)...]
  }

  /// Appends the name of a documents root to `name`.
  private mutating func appendRoot(project: ArraySlice<UInt8>, database: ArraySlice<UInt8>) {
    name.append(contentsOf: "projects/".utf8)
    name.append(contentsOf: project)
    name.append(contentsOf: "/databases/".utf8)
    if database.isEmpty {
      name.append(contentsOf: DatabaseID.defaultDatabase.utf8)
    } else {
      name.append(contentsOf: database)
    }
    name.append(contentsOf: "/documents".utf8)
  }

  private static func namespace(_ name: UnsafeRawBufferPointer) -> WireError {
    .malformedProtobuf(
      "the key is in the namespace \"\(String(decoding: name, as: UTF8.self))\" of Datastore; Firestore has no "
        + "namespaces")
  }

  // MARK: Properties

  /// Appends the properties of an entity as fields of the innermost map.
  private mutating func readProperties(_ entity: UnsafeRawBufferPointer) throws(WireError) {
    let first = properties.count
    defer { properties.removeLast(properties.count - first) }
    var reader = ProtobufReader(entity)
    while let field = try reader.next() {
      guard field.number == EntitySchema.property || field.number == EntitySchema.rawProperty,
        field.wireType == .lengthDelimited
      else { continue }
      guard properties.count < ExportLimits.propertiesMax else {
        throw .malformedProtobuf("the entity has more than \(ExportLimits.propertiesMax) values")
      }
      properties.append(try Self.property(field.bytes))
    }
    groupByName(from: first)
    var index = first
    let end = properties.count
    while index < end {
      var next = index + 1
      while next < end, Ordering.raw(properties[next].name, properties[index].name) == .equal { next += 1 }
      let property = properties[index]
      fieldNames.append(property.name)
      try encoder.beginEntry(key: property.name)
      try appendField(index..<next)
      encoder.endEntry()
      fieldNames.removeLast()
      index = next
    }
  }

  private static func property(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> Property {
    var property = Property()
    var parts = ProtobufReader(bytes)
    while let part = try parts.next() {
      switch (part.number, part.wireType) {
      case (EntitySchema.Property.meaning, .varint): property.meaning = part.int64
      case (EntitySchema.Property.name, .lengthDelimited): property.name = part.bytes
      case (EntitySchema.Property.multiple, .varint): property.isMultiple = part.bool
      case (EntitySchema.Property.value, .lengthDelimited): property.value = part.bytes
      default: break
      }
    }
    return property
  }

  /// Sorts properties by name, and keeps the order of those with the same name, unless all of these are adjacent in
  /// ascending order already.
  private mutating func groupByName(from first: Int) {
    var isGrouped = true
    for index in properties.indices.dropFirst(first + 1)
    where Ordering.raw(properties[index - 1].name, properties[index].name) == .greater {
      isGrouped = false
      break
    }
    guard !isGrouped else { return }
    // The sort of the standard library is stable.
    properties[first...].sort { Ordering.raw($0.name, $1.name) == .less }
  }

  /// Appends the value of a field: a single value, or an array of the properties in a range.
  private mutating func appendField(_ range: Range<Int>) throws(WireError) {
    let property = properties[range.lowerBound]
    if property.meaning == EntitySchema.Meaning.emptyList, range.count == 1 {
      try encoder.beginArray()
      return encoder.endArray()
    }
    guard property.isMultiple else {
      guard range.count == 1 else { throw .malformedProtobuf("the field occurs twice") }
      return try append(property)
    }
    if property.meaning == EntitySchema.Meaning.vector { return try appendVector(range) }
    try encoder.beginArray()
    for index in range {
      let element = properties[index]
      guard element.isMultiple else { throw .malformedProtobuf("the field is an array and also a single value") }
      try append(element)
    }
    encoder.endArray()
  }

  private mutating func appendVector(_ range: Range<Int>) throws(WireError) {
    try encoder.beginMap()
    try entry(Self.typeKey) { (decoder) throws(WireError) in
      try Self.vectorType.withRawBytes { (text) throws(WireError) in try decoder.encoder.string(text) }
    }
    try entry(Self.valueKey) { (decoder) throws(WireError) in
      try decoder.encoder.beginArray()
      for index in range {
        guard decoder.properties[index].meaning == EntitySchema.Meaning.vector else {
          throw .malformedProtobuf("the field is a vector and also an array")
        }
        try decoder.append(decoder.properties[index])
      }
      decoder.encoder.endArray()
    }
    try encoder.endMap()
  }

  private static let typeKey = Array("__type__".utf8)
  private static let vectorType = Array("__vector__".utf8)
  private static let valueKey = Array("value".utf8)

  private mutating func entry(
    _ key: [UInt8], _ body: (inout EntityDecoder) throws(WireError) -> Void
  ) throws(WireError) {
    try key.withRawBytes { (key) throws(WireError) in try encoder.beginEntry(key: key) }
    try body(&self)
    encoder.endEntry()
  }

  // MARK: Values

  private mutating func append(_ property: Property) throws(WireError) {
    guard !EntitySchema.Meaning.enterprise.contains(property.meaning) else {
      throw .malformedProtobuf(
        "the value has a type of the enterprise edition (meaning \(property.meaning)), which an import cannot store")
    }
    var reader = ProtobufReader(property.value)
    guard let member = try reader.nextOrGroup() else { return encoder.null() }
    switch (member.number, member.wireType) {
    case (EntitySchema.Value.integer, .varint):
      guard property.meaning == EntitySchema.Meaning.timestamp else { return encoder.integer(member.int64) }
      let moment = Timestamp(uncheckedMicroseconds: member.int64)
      guard moment >= .earliest, moment <= .latest else { throw .model(.timestampOutOfRange) }
      encoder.timestamp(moment)
    case (EntitySchema.Value.boolean, .varint): encoder.boolean(member.bool)
    case (EntitySchema.Value.double, .fixed64): encoder.double(member.double)
    case (EntitySchema.Value.string, .lengthDelimited):
      switch property.meaning {
      case EntitySchema.Meaning.entity:
        // The limit on nesting in beginMap bounds this recursion.
        try encoder.beginMap()
        try readProperties(member.bytes)
        try encoder.endMap()
      case EntitySchema.Meaning.blob, EntitySchema.Meaning.byteString: try encoder.bytes(member.bytes)
      default: try encoder.string(member.bytes)
      }
    case (EntitySchema.Value.point, .lengthDelimited): try encoder.geoPoint(try Self.point(member.bytes))
    case (EntitySchema.Value.reference, .lengthDelimited): try appendReference(member.bytes)
    case (EntitySchema.Value.user, .lengthDelimited):
      throw .malformedProtobuf("the value is a user of Datastore, which Firestore does not have")
    default: throw .malformedProtobuf("the value has an unknown type (\(member.number))")
    }
  }

  private static func point(_ bytes: UnsafeRawBufferPointer) throws(WireError) -> GeoPoint {
    var point = GeoPoint(latitude: 0, longitude: 0)
    var reader = ProtobufReader(bytes)
    while let part = try reader.next() {
      switch (part.number, part.wireType) {
      case (EntitySchema.Value.x, .fixed64): point.latitude = part.double
      case (EntitySchema.Value.y, .fixed64): point.longitude = part.double
      default: break
      }
    }
    return point
  }

  private mutating func appendReference(_ reference: UnsafeRawBufferPointer) throws(WireError) {
    var ownApp = UnsafeRawBufferPointer(start: nil, count: 0)
    var ownDatabase = ownApp
    var target: [UInt8] = []
    var reader = ProtobufReader(reference)
    while let part = try reader.nextOrGroup() {
      guard part.wireType == .lengthDelimited else { continue }
      switch part.number {
      case EntitySchema.Reference.app: ownApp = part.bytes
      case EntitySchema.Reference.database: ownDatabase = part.bytes
      case EntitySchema.Reference.namespace where !part.bytes.isEmpty: throw Self.namespace(part.bytes)
      case EntitySchema.ValuePathElement.group:
        try Self.append(
          part.bytes, type: EntitySchema.ValuePathElement.type, id: EntitySchema.ValuePathElement.id,
          name: EntitySchema.ValuePathElement.name, to: &target)
      default: break
      }
    }
    name.removeAll(keepingCapacity: true)
    if ownApp.elementsEqual(app), ownDatabase.elementsEqual(databaseID) {
      name.append(contentsOf: documentsRoot)
      if !isOwnDatabase { references.rewritten += 1 }
    } else {
      appendRoot(project: Self.project(Array(ownApp)[...]), database: Array(ownDatabase)[...])
      if name != documentsRoot { references.foreign += 1 }
    }
    name.append(UInt8(ascii: "/"))
    name.append(contentsOf: target)
    let text = name
    try text.withRawBytes { (bytes) throws(WireError) in try encoder.reference(bytes) }
  }

  /// Returns the counts since the last call.
  mutating func takeReferences() -> ReferenceCounts {
    defer { references = ReferenceCounts() }
    return references
  }
}
