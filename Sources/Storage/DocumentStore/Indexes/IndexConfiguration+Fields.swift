package import DocumentModel

extension IndexConfiguration {
  /// Returns the single-field entries of a field in the collections with an ID.
  ///
  /// The setting of the field applies, otherwise that of the nearest map around it, otherwise that of all fields of
  /// the collections, otherwise that of all fields of all collections. Cost: one pass over ``fields`` to build a tree.
  package func entries(of path: FieldPath, in collectionID: String) -> Set<FieldIndexing.Entries> {
    if fields.isEmpty { return FieldIndexing.automatic }
    let rules = FieldRules(self, of: Array(collectionID.utf8))
    guard let governor = rules.setting(at: rules.place(of: path)) else { return FieldIndexing.automatic }
    let declared = fields.first { field in
      field.path == governor.path && field.collectionID.utf8.elementsEqual(governor.collectionID)
    }
    return declared?.entries ?? FieldIndexing.automatic
  }
}

extension FieldRules {
  /// Builds the rules that a configuration sets for the collections with an ID.
  init(_ configuration: IndexConfiguration, of collectionID: [UInt8]) {
    let settings = configuration.fields.map { field in
      FieldSetting(
        collectionID: Array(field.collectionID.utf8), path: field.path, entries: AutomaticEntries(field.entries),
        expires: false)
    }
    self.init(settings.filter { $0.isForAllCollections || $0.collectionID == collectionID })
  }
}
