import DocumentModel
import KeyValue
import Matching

/// Changes the stored indexes to match a declared configuration: starts to build new indexes and to remove others.
///
/// It changes only the rows that describe indexes, in one transaction. ``IndexBuilder`` updates the entries in the
/// background, and queries use no index before it is complete.
struct IndexReconciliation {
  private let catalog: IndexCatalog
  private let configuration: IndexConfiguration
  /// Whether the database has no documents, so that there is nothing to build.
  private let isEmpty: Bool

  /// Applies a configuration. Returns whether it differs from the previous one.
  static func apply(
    _ configuration: IndexConfiguration, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> Bool {
    var reader = SnapshotReader(transaction)
    let catalog = try IndexCatalog(&reader)
    let mustBuild = catalog.indexes.contains { $0.state == .failed || $0.mustBeReplaced }
    if catalog.configuration == configuration, !mustBuild { return false }
    let isEmpty = try DatabaseContents.cursor(.documents, transaction).suffix() == nil
    let reconciliation = IndexReconciliation(catalog: catalog, configuration: configuration, isEmpty: isEmpty)
    try reconciliation.writeIndexes(transaction, highest: try reader.meta(.indexNumber))
    try reconciliation.writeSettings(transaction)
    var key = StorageKey()
    key.begin(.indexes)
    key.append(number: 0)
    try transaction.put(key, IndexCatalog.row(of: configuration))
    try transaction.put(.indexGeneration, catalog.generation + 1)
    let hasText =
      configuration.indexes.contains { $0.textLanguage != nil }
      || catalog.indexes.contains { $0.definition.textLanguage != nil }
    try transaction.put(.format, hasText ? DocumentStoreFormat.textual : DocumentStoreFormat.indexed)
    return true
  }

  /// Marks all work as finished, for a database whose documents and entries were all removed.
  static func finishAll(_ transaction: any KeyValueTransaction) throws(StorageError) {
    var reader = SnapshotReader(transaction)
    let catalog = try IndexCatalog(&reader)
    guard IndexBuilder.isDue(catalog) else { return }
    for var index in catalog.indexes where index.state == .building {
      index.state = .ready
      try transaction.put(index)
    }
    for var setting in catalog.settings where setting.state != .settled {
      setting.state = .settled
      setting.progress = IndexProgress()
      try transaction.put(setting)
    }
    try transaction.put(.indexGeneration, catalog.generation + 1)
  }

  /// The stored forms of the indexes in the configuration, each once.
  private var wanted: [IndexDefinition] {
    var definitions = configuration.indexes
    for field in configuration.fields where !field.path.isAllFields {
      for mode in [IndexDefinition.Mode.ascending, .descending, .contains]
      where field.entries.contains(FieldIndexing.Entries(.collectionGroup, mode)) {
        let part = IndexDefinition.Field(field.path, mode)
        definitions.append(
          IndexDefinition(collectionID: field.collectionID, scope: .collectionGroup, fields: [part]))
      }
    }
    var seen: Set<IndexDefinition> = []
    return definitions.map(\.stored).filter { seen.insert($0).inserted }
  }

  private func writeIndexes(_ transaction: any KeyValueTransaction, highest: UInt64) throws(StorageError) {
    var missing = wanted
    for var index in catalog.indexes where index.state != .removing {
      if let place = missing.firstIndex(of: index.definition), index.state != .failed, !index.mustBeReplaced {
        missing.remove(at: place)
      } else {
        index.state = .removing
        try transaction.put(index)
      }
    }
    var number = highest
    for definition in missing {
      number += 1
      try transaction.put(StoredIndex(number: number, definition: definition, state: isEmpty ? .ready : .building))
    }
    if number != highest { try transaction.put(.indexNumber, number) }
  }

  private func writeSettings(_ transaction: any KeyValueTransaction) throws(StorageError) {
    var declared = configuration.fields.map { field in
      FieldSetting(
        collectionID: Array(field.collectionID.utf8), path: field.path, entries: AutomaticEntries(field.entries),
        expires: field.expires)
    }
    for var setting in catalog.settings {
      var entries: AutomaticEntries
      if let place = declared.firstIndex(where: { $0.isSamePlace(as: setting) }) {
        let new = declared.remove(at: place)
        entries = new.entries
        setting.expires = new.expires
        setting.isUndeclared = false
      } else {
        entries = entriesWithout(setting)
        setting.expires = false
        setting.isUndeclared = true
      }
      if entries != setting.entries {
        setting.entries = entries
        setting.state = isEmpty ? .settled : .clearing
        setting.progress = IndexProgress()
      }
      try transaction.put(setting)
    }
    for var setting in declared {
      // The existing entries are already right if the setting that governed the field so far requested the same ones.
      let rules = catalog.collection(setting.collectionID)?.rules
      let governor = rules.flatMap {
        $0.setting(at: setting.path.isAllFields ? FieldRules.root : $0.place(of: setting.path))
      }
      let isThere = (governor?.readable ?? .all) == setting.entries && governor?.state ?? .settled == .settled
      setting.state = isEmpty || isThere ? .settled : .clearing
      try transaction.put(setting)
    }
  }

  /// Returns the entries that the configuration requests for a field after its own setting was removed.
  private func entriesWithout(_ setting: FieldSetting) -> AutomaticEntries {
    let rules = FieldRules(configuration, of: setting.collectionID)
    return rules.written(at: setting.path.isAllFields ? FieldRules.root : rules.place(of: setting.path))
  }
}

extension FieldSetting {
  func isSamePlace(as other: FieldSetting) -> Bool { collectionID == other.collectionID && path == other.path }
}

extension KeyValueTransaction {
  /// Stores the row of an index.
  func put(_ index: StoredIndex) throws(StorageError) {
    var key = StorageKey()
    key.begin(.indexes)
    key.append(number: index.number)
    try put(key, index.row)
  }

  /// Stores the row of a field's setting.
  func put(_ setting: FieldSetting) throws(StorageError) {
    try put(FieldSetting.key(setting.collectionID, setting.path), setting.row)
  }
}
