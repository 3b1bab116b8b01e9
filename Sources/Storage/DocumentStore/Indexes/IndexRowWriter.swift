import DocumentModel
import KeyEncoding
import KeyValue

/// An encoder for rows that describe indexes: a sequence of self-delimiting numbers and texts.
struct IndexRowWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ number: UInt64) { OrderedCode.append(number: number, to: &bytes) }

  mutating func append(text: some Collection<UInt8>) { OrderedCode.append(segment: text, to: &bytes) }

  mutating func append(_ path: FieldPath) {
    append(UInt64(path.segments.count))
    for segment in path.segments { append(text: Array(segment.utf8)) }
  }

  mutating func append(_ scope: IndexDefinition.Scope) { append(scope == .collection ? 0 : 1) }

  mutating func append(_ mode: IndexDefinition.Mode) {
    switch mode {
    case .ascending: append(0)
    case .descending: append(1)
    case .contains: append(2)
    case .vector(let dimension):
      append(3)
      append(UInt64(dimension))
    case .text(let language):
      append(4)
      append(text: Array(language.code.utf8))
    }
  }

  mutating func append(_ index: IndexDefinition) {
    append(text: Array(index.collectionID.utf8))
    append(index.scope)
    append(UInt64(index.fields.count))
    for field in index.fields {
      append(field.path)
      append(field.mode)
    }
  }

  mutating func append(_ field: FieldIndexing) {
    append(text: Array(field.collectionID.utf8))
    append(field.path)
    append(field.expires ? 1 : 0)
    append(UInt64(field.entries.count))
    for entries in field.entries {
      append(entries.scope)
      append(entries.mode)
    }
  }

  mutating func append(_ progress: IndexProgress) {
    append(progress.documents)
    append(text: progress.position)
  }
}

/// A decoder for rows encoded by ``IndexRowWriter``.
struct IndexRowReader {
  private var bytes: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { bytes.isEmpty }

  static let damage = StorageError.corruption(path: "indexes", detail: "malformed index row")

  mutating func number() throws(StorageError) -> UInt64 {
    guard let number = OrderedCode.takeNumber(&bytes) else { throw Self.damage }
    return number
  }

  /// Reads the number of parts that follow. Each part takes one byte or more.
  mutating func count() throws(StorageError) -> Int {
    let number = try number()
    guard number <= bytes.count else { throw Self.damage }
    return Int(number)
  }

  mutating func text() throws(StorageError) -> [UInt8] {
    var text: [UInt8] = []
    guard OrderedCode.take(segment: &bytes, into: &text) else { throw Self.damage }
    return text
  }

  mutating func path() throws(StorageError) -> FieldPath {
    var segments: [String] = []
    for _ in 0..<(try count()) { segments.append(String(decoding: try text(), as: UTF8.self)) }
    guard !segments.isEmpty else { throw Self.damage }
    return FieldPath(segments: segments)
  }

  mutating func scope() throws(StorageError) -> IndexDefinition.Scope {
    try number() == 0 ? .collection : .collectionGroup
  }

  mutating func mode() throws(StorageError) -> IndexDefinition.Mode {
    switch try number() {
    case 0: return .ascending
    case 1: return .descending
    case 2: return .contains
    case 3:
      let dimension = try number()
      guard dimension <= Limits.vectorDimensionsMax else { throw Self.damage }
      return .vector(dimension: Int(dimension))
    case 4:
      guard let language = TextLanguage(tag: String(decoding: try text(), as: UTF8.self)) else { throw Self.damage }
      return .text(language)
    default: throw Self.damage
    }
  }

  mutating func index() throws(StorageError) -> IndexDefinition {
    let id = String(decoding: try text(), as: UTF8.self)
    let scope = try scope()
    var fields: [IndexDefinition.Field] = []
    for _ in 0..<(try count()) { fields.append(IndexDefinition.Field(try path(), try mode())) }
    return IndexDefinition(collectionID: id, scope: scope, fields: fields)
  }

  mutating func field() throws(StorageError) -> FieldIndexing {
    let id = String(decoding: try text(), as: UTF8.self)
    let path = try path()
    let expires = try number() == 1
    var entries: Set<FieldIndexing.Entries> = []
    for _ in 0..<(try count()) { entries.insert(FieldIndexing.Entries(try scope(), try mode())) }
    return FieldIndexing(collectionID: id, path: path, entries: entries, expires: expires)
  }

  mutating func progress() throws(StorageError) -> IndexProgress {
    IndexProgress(documents: try number(), position: try text())
  }
}
