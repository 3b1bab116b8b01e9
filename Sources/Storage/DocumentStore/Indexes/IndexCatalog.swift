package import DocumentModel
import KeyEncoding
package import KeyValue
import Synchronization

/// Which indexes a database has at one moment, beyond the automatic ones, and how far each is. Immutable.
package final class IndexCatalog: Sendable {
  /// Rises with every change of what is written or may be read.
  package let generation: UInt64
  /// What was declared.
  package let configuration: IndexConfiguration
  /// The stored indexes by number, those that are being removed included.
  package let indexes: [StoredIndex]
  let settings: [FieldSetting]
  private let collections: [[UInt8]: CollectionIndexing]
  private let otherCollections: CollectionIndexing?

  /// No index but the automatic ones.
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

  /// What a snapshot shows. Cost: reads a row for each index and each setting.
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
    var row = IndexRow()
    row.append(UInt64(configuration.indexes.count))
    for index in configuration.indexes { row.append(index) }
    row.append(UInt64(configuration.fields.count))
    for field in configuration.fields { row.append(field) }
    return row.bytes
  }

  // MARK: For commits

  /// What holds for the collections of an id; `nil` where every field has its automatic entries and nothing else.
  func collection(_ id: some Sequence<UInt8>) -> CollectionIndexing? {
    if collections.isEmpty { return otherCollections }
    return collections[Array(id)] ?? otherCollections
  }

  // MARK: For queries

  /// The indexes that may be scanned for queries on collections of an id, or on the group.
  package func ready(for collectionID: String, scope: IndexDefinition.Scope) -> [StoredIndex] {
    guard !collections.isEmpty, let known = collections[Array(collectionID.utf8)] else { return [] }
    return known.maintained.filter { $0.state == .ready && $0.definition.scope == scope }
  }

  /// Whether the automatic entries of a field are there; not where it is exempt, or was until they are made anew.
  ///
  /// Without a collection's id, whether they are there in all collections. Only where they are does a field without a
  /// number tell that no document has it.
  package func mayScan(_ path: FieldPath, of collectionID: String?, _ table: Table) -> Bool {
    if settings.isEmpty { return true }
    guard let collectionID else { return collections.values.allSatisfy { $0.mayScan(path, table) } && otherCollections == nil }
    return collection(collectionID.utf8)?.mayScan(path, table) ?? true
  }

  /// How far an index is that was declared, or the entries of a field over the group; `nil` where it was not.
  package func state(of definition: IndexDefinition) -> StoredIndex.State? {
    let stored = definition.stored
    return indexes.first { $0.state != .removing && $0.definition == stored }?.state
  }

  /// The fields after whose time documents vanish.
  package var expiringFields: [(collectionID: String, path: FieldPath)] {
    settings.filter { $0.expires && !$0.isLifted }.map { (String(decoding: $0.collectionID, as: UTF8.self), $0.path) }
  }
}

/// What is indexed of the collections of one id.
struct CollectionIndexing: Sendable {
  /// The fields that differ; `nil` where all have their automatic entries.
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

/// The catalogue that was last read, so that it is read again only when it changed.
final class IndexCatalogCache: Sendable {
  private let latest = Mutex(IndexCatalog.none)

  /// The catalogue that a snapshot shows. Cost: one lookup, mostly.
  ///
  /// Not for a transaction that changes it: a rolled back generation may come again with other content.
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
