import DocumentModel
import KeyEncoding
import KeyValue
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// Compares the index entries of a store with its documents, computed independently of the store's code.
enum IndexCheck {
  /// An entry that follows from a document.
  private struct Expected {
    var key: [UInt8]
    /// Whether the entry must exist. Otherwise it may exist, because it is being added.
    var isRequired: Bool
  }

  static func check(_ db: TestDatabase, _ comment: String = "") throws {
    let catalog = try db.catalog()
    let fields = try FieldNumbers(db)
    var expected: [Expected] = []
    for (key, row) in try StoreDump(db, table: .documents).entries {
      let (number, idCode) = split(key)
      let path = try db.database.read { reader in try reader.collectionPath(number) }
      var id: [UInt8] = []
      idCode.withUnsafeBytes { _ = OrderedCode.decode(lastID: $0, into: &id) }
      let document = try EncodedFields(canonical: Array(row.dropFirst(21))).decoded()
      expected += try automatic(document, [], 0, path, number, idCode, catalog, fields, comment)
      for index in catalog.indexes where index.state == .building || index.state == .ready {
        guard index.definition.collectionID.utf8.elementsEqual(path.lastSegment) else { continue }
        for code in codes(index.definition, document) {
          var key = [index.table.rawValue]
          OrderedCode.append(number: index.number, to: &key)
          if index.table == .compositeEntries { OrderedCode.append(number: number, to: &key) }
          key += code
          if index.table == .compositeEntries { key += idCode } else { NameCode.append(path.appending(id), to: &key) }
          expected.append(Expected(key: key, isRequired: index.state == .ready))
        }
      }
    }
    let found = try found(db, catalog, fields)
    let missing = Set(expected.filter(\.isRequired).map(\.key)).subtracting(found)
    try #require(missing.isEmpty, "\(missing.count) entries are missing \(comment)")
    let left = found.subtracting(expected.map(\.key))
    try #require(left.isEmpty, "\(left.count) entries were left over \(comment)")
    try checkStore(db, comment)
  }

  /// The store's own check must find no problem.
  static func checkStore(_ db: TestDatabase, _ comment: String = "") throws {
    let snapshot = try db.store.snapshot()
    defer { snapshot.end() }
    let problems = try DatabaseCheck.run(snapshot).problems
    try #require(problems.isEmpty, "\(problems) \(comment)")
  }

  /// Returns the existing entries, without those being deleted.
  private static func found(
    _ db: TestDatabase, _ catalog: IndexCatalog, _ fields: FieldNumbers
  ) throws -> Set<[UInt8]> {
    var found: Set<[UInt8]> = []
    for table in [Table.ascendingEntries, .containmentEntries] {
      for key in try StoreDump(db, table: table).entries.keys {
        let (collection, rest) = split(key)
        let (field, _) = split([0] + rest)
        let path = try db.database.read { reader in try reader.collectionPath(collection) }
        if governor(fields.path(field), path, catalog)?.state != .clearing { found.insert(key) }
      }
    }
    let gone = Set(catalog.indexes.filter { $0.state == .removing || $0.state == .failed }.map(\.number))
    for table in [Table.compositeEntries, .groupEntries] {
      for key in try StoreDump(db, table: table).entries.keys where !gone.contains(split(key).number) {
        found.insert(key)
      }
    }
    return found
  }

  /// Returns the number after the table's number, and the rest.
  private static func split(_ key: [UInt8]) -> (number: UInt64, rest: [UInt8]) {
    key.dropFirst().withUnsafeBytes { bytes in
      var rest = bytes
      let number = OrderedCode.takeNumber(&rest) ?? 0
      return (number, Array(rest))
    }
  }

  private static func automatic(
    _ map: MapValue, _ outer: [String], _ parent: UInt64, _ path: ResourcePath, _ number: UInt64, _ idCode: [UInt8],
    _ catalog: IndexCatalog, _ fields: FieldNumbers, _ comment: String
  ) throws -> [Expected] {
    var expected: [Expected] = []
    for (name, value) in map.entries {
      let fieldPath = outer + [name]
      let setting = governor(fieldPath, path, catalog)
      let kinds = setting?.written ?? .all
      let isRequired = setting?.state ?? .settled == .settled
      let field = fields.number(name, parent)
      func add(_ table: Table, _ value: Value) throws {
        var key = [table.rawValue]
        OrderedCode.append(number: number, to: &key)
        OrderedCode.append(number: try #require(field, "\(name) has no number \(comment)"), to: &key)
        expected.append(Expected(key: key + code(value) + idCode, isRequired: isRequired))
      }
      // A field whose entries are being added may not have a number yet.
      let isNumbered = field != nil || isRequired
      if kinds.contains(.ascending), isNumbered { try add(.ascendingEntries, value) }
      if kinds.contains(.containment), isNumbered, case .array(let elements) = value {
        for element in elements { try add(.containmentEntries, element) }
      }
      if case .map(let inner) = value, inner.vectorComponents == nil {
        expected += try automatic(
          inner, fieldPath, field ?? .max, path, number, idCode, catalog, fields, comment)
      }
    }
    return expected
  }

  /// Returns the setting that governs a field: its own, or that of the nearest enclosing field, of all fields of
  /// the collection, or of all collections.
  private static func governor(_ field: [String], _ collection: ResourcePath, _ catalog: IndexCatalog) -> FieldSetting?
  {
    let own = catalog.settings.filter { $0.collectionID.elementsEqual(collection.lastSegment) }
    for count in stride(from: field.count, to: 0, by: -1) {
      let path = FieldPath(segments: Array(field.prefix(count)))
      if let setting = own.first(where: { $0.path == path && !path.isAllFields }) { return setting }
    }
    return own.first { $0.path.isAllFields } ?? catalog.settings.first { $0.isForAllCollections }
  }

  /// Returns the codes of a document's entries in an index in stored form.
  private static func codes(_ index: IndexDefinition, _ document: MapValue) -> Set<[UInt8]> {
    var codes: Set<[UInt8]> = [[]]
    if index.textLanguage != nil {
      return Set(index.fields.flatMap { words(in: document[$0.path]) }.map(termCode))
    }
    for field in index.fields {
      guard let value = document[field.path] else { return [] }
      switch field.mode {
      case .ascending: codes = Set(codes.map { $0 + code(value) })
      case .descending: codes = Set(codes.map { $0 + code(value).map { ~$0 } })
      case .contains:
        guard case .array(let elements) = value else { return [] }
        codes = Set(codes.flatMap { head in elements.map { head + code($0) } })
      case .vector(let dimension):
        guard case .map(let map) = value, map.vectorComponents?.count == dimension else { return [] }
      case .text: return []
      }
    }
    return codes
  }

  /// Returns the words of the strings in a value. The tests use ASCII, and a language without stems.
  private static func words(in value: Value?) -> [String] {
    switch value {
    case .string(let text): text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    case .array(let elements): elements.flatMap { words(in: $0) }
    case .map(let map) where map.vectorComponents == nil: map.entries.flatMap { words(in: $0.value) }
    default: []
    }
  }

  private static func termCode(_ word: String) -> [UInt8] {
    var code: [UInt8] = []
    OrderedCode.append(segment: Array(word.utf8), to: &code)
    return code
  }

  private static func code(_ value: Value) -> [UInt8] {
    var code: [UInt8] = []
    _ = OrderedCode.encode(value, into: &code, budget: Limits.indexedValueBytesMax)
    return code
  }
}

/// The numbers of fields in the catalog.
private struct FieldNumbers {
  private var names: [UInt64: (parent: UInt64, name: String)] = [:]
  private var numbers: [UInt64: [[UInt8]: UInt64]] = [:]

  init(_ db: TestDatabase) throws {
    for (key, row) in try StoreDump(db, table: .fieldNames).entries {
      let number = Array(key.dropFirst()).withUnsafeBytes { bytes in
        var rest = bytes
        return OrderedCode.takeNumber(&rest) ?? 0
      }
      let field = row.withUnsafeBytes { bytes in
        var rest = bytes
        return (parent: OrderedCode.takeNumber(&rest) ?? 0, name: String(decoding: rest, as: UTF8.self))
      }
      names[number] = field
      numbers[field.parent, default: [:]][Array(field.name.utf8)] = number
    }
  }

  func number(_ name: String, _ parent: UInt64) -> UInt64? { numbers[parent]?[Array(name.utf8)] }

  func path(_ number: UInt64) -> [String] {
    guard let field = names[number] else { return [] }
    return path(field.parent) + [field.name]
  }
}
