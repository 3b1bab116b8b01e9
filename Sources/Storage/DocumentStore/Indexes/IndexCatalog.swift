package import DocumentModel
import KeyEncoding
package import KeyValue
import Synchronization

/// The declared indexes and field settings of a database at one moment, with their progress. Immutable, except for what
/// planners note.
package final class IndexCatalog: Sendable {
  /// Increases with every change that affects which entries are written or may be scanned.
  package let generation: UInt64
  /// The configuration as declared.
  package let configuration: IndexConfiguration
  /// The stored indexes by number, including those being removed.
  package let indexes: [StoredIndex]
  /// The indexes that planners chose.
  package let choices = IndexChoices()
  let settings: [FieldSetting]
  private let collections: [[UInt8]: CollectionIndexing]
  private let otherCollections: CollectionIndexing?

  /// The catalog of a database without declared indexes or field settings.
  package static let none = IndexCatalog(
    generation: 0, configuration: IndexConfiguration(), indexes: [], settings: [])

  init(
    generation: UInt64, configuration: IndexConfiguration, indexes: [StoredIndex], settings: [FieldSetting]
  ) {
    self.generation = generation
    self.configuration = configuration
    self.indexes = indexes
    self.settings = settings
    let forAll = settings.filter(\.isForAllCollections)
    otherCollections = CollectionIndexing(indexes: [], settings: forAll)
    var collections: [[UInt8]: CollectionIndexing] = [:]
    var ids = Set(settings.map(\.collectionID))
    for index in indexes { ids.insert(Array(index.definition.collectionID.utf8)) }
    for id in ids {
      collections[id] = CollectionIndexing(
        indexes: indexes.filter { $0.definition.collectionID.utf8.elementsEqual(id) },
        settings: forAll + settings.filter { $0.collectionID == id && !$0.isForAllCollections })
    }
    self.collections = collections
  }

  /// Reads the catalog from a snapshot. Cost: one row per index and per setting.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package convenience init(_ reader: inout SnapshotReader) throws(StorageError) {
    var configuration = IndexConfiguration()
    var indexes: [StoredIndex] = []
    let rows = try DatabaseContents.cursor(.indexes, reader.snapshot)
    while var suffix = try rows.suffix() {
      guard let number = OrderedCode.takeNumber(&suffix) else { throw IndexRowReader.damage }
      if number == 0 {
        configuration = try Self.configuration(rows.cursor.value)
      } else {
        indexes.append(try StoredIndex(number: number, row: rows.cursor.value))
      }
      rows.consume()
    }
    var settings: [FieldSetting] = []
    let fields = try DatabaseContents.cursor(.fieldSettings, reader.snapshot)
    while let suffix = try fields.suffix() {
      settings.append(try FieldSetting(keySuffix: suffix, row: fields.cursor.value))
      fields.consume()
    }
    self.init(
      generation: try reader.meta(.indexGeneration), configuration: configuration, indexes: indexes,
      settings: settings)
  }

  private static func configuration(_ row: UnsafeRawBufferPointer) throws(StorageError) -> IndexConfiguration {
    var reader = IndexRowReader(row)
    var configuration = IndexConfiguration()
    for _ in 0..<(try reader.count()) { configuration.indexes.append(try reader.index()) }
    for _ in 0..<(try reader.count()) { configuration.fields.append(try reader.field()) }
    return configuration
  }

  static func row(of configuration: IndexConfiguration) -> [UInt8] {
    var row = IndexRowWriter()
    row.append(UInt64(configuration.indexes.count))
    for index in configuration.indexes { row.append(index) }
    row.append(UInt64(configuration.fields.count))
    for field in configuration.fields { row.append(field) }
    return row.bytes
  }

  // MARK: For commits

  /// Returns the indexing of the collections with an ID, or `nil` if they have only the automatic entries of every
  /// field.
  func collection(_ id: some Sequence<UInt8>) -> CollectionIndexing? {
    if collections.isEmpty { return otherCollections }
    return collections[Array(id)] ?? otherCollections
  }

  // MARK: For queries

  /// Returns the complete indexes for queries on collections with an ID, or on the collection group.
  package func ready(for collectionID: String, scope: IndexDefinition.Scope) -> [StoredIndex] {
    guard !collections.isEmpty, let known = collections[Array(collectionID.utf8)] else { return [] }
    return known.maintained.filter { $0.isUsable && $0.definition.scope == scope }
  }

  /// Returns the text indexes of the collections with an ID, ready or not, without those being removed.
  package func textIndexes(for collectionID: String) -> [StoredIndex] {
    indexes.filter {
      $0.state != .removing && $0.definition.textLanguage != nil
        && $0.definition.collectionID.utf8.elementsEqual(collectionID.utf8)
    }
  }

  /// Returns whether the automatic entries of a field exist. They do not if the field is exempt, or if its entries
  /// are still being made again.
  ///
  /// If `collectionID` is `nil`, returns whether they exist in all collections. Only then does a field without a
  /// number prove that no document has the field.
  package func mayScan(_ path: FieldPath, of collectionID: String?, _ table: Table) -> Bool {
    if settings.isEmpty { return true }
    guard let collectionID else {
      return collections.values.allSatisfy { $0.mayScan(path, table) } && otherCollections == nil
    }
    return collection(collectionID.utf8)?.mayScan(path, table) ?? true
  }

  /// Returns the state of an index, or of a field's entries over the collection group, or `nil` if it is not declared.
  package func state(of definition: IndexDefinition) -> StoredIndex.State? {
    let stored = definition.stored
    return indexes.first { $0.state != .removing && $0.definition == stored }?.state
  }

  /// The fields that hold the time after which a document is deleted.
  package var expiringFields: [(collectionID: String, path: FieldPath)] {
    settings.filter { $0.expires && !$0.isUndeclared }.map {
      (String(decoding: $0.collectionID, as: UTF8.self), $0.path)
    }
  }
}

/// The indexing of the collections with one ID.
struct CollectionIndexing: Sendable {
  /// The rules of fields that differ, or `nil` if all fields have their automatic entries.
  let rules: FieldRules?
  /// The indexes that commits maintain.
  let maintained: [StoredIndex]

  init?(indexes: [StoredIndex], settings: [FieldSetting]) {
    rules = settings.isEmpty ? nil : FieldRules(settings)
    maintained = indexes.filter(\.isMaintained)
    if rules == nil, maintained.isEmpty { return nil }
  }

  init(rules: FieldRules?, maintained: [StoredIndex]) {
    self.rules = rules
    self.maintained = maintained
  }

  func mayScan(_ path: FieldPath, _ table: Table) -> Bool {
    guard let rules, let setting = rules.setting(at: rules.place(of: path)) else { return true }
    return setting.readable.contains(table == .containmentEntries ? .containment : .ascending)
  }
}

/// A cache of the newest catalog, which is read again only after a change.
final class IndexCatalogCache: Sendable {
  private let latest = Mutex(IndexCatalog.none)

  /// Returns the catalog in a snapshot. Cost: one lookup, unless the catalog changed.
  ///
  /// Do not use it in a transaction that changes the catalog: after a rollback, the same generation may return with
  /// other content.
  func catalog(_ reader: inout SnapshotReader) throws(StorageError) -> IndexCatalog {
    let generation = try reader.meta(.indexGeneration)
    let known = latest.withLock { $0 }
    if known.generation == generation { return known }
    let catalog = try IndexCatalog(&reader)
    latest.withLock { latest in
      if latest.generation < catalog.generation { latest = catalog }
    }
    return catalog
  }
}
