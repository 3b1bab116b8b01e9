package import DocumentModel

extension IndexConfiguration {
  /// How a field of the collections of an id is indexed by itself.
  ///
  /// What is said of the field counts, else of the nearest map around it, else of all fields of the collections, else
  /// of all fields of all collections. Cost: one pass over ``fields``, with a tree of them.
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
  /// What a configuration asks for in the collections of an id.
  init(_ configuration: IndexConfiguration, of collectionID: [UInt8]) {
    let settings = configuration.fields.map { field in
      FieldSetting(
        collectionID: Array(field.collectionID.utf8), path: field.path, entries: AutomaticEntries(field.entries),
        expires: false)
    }
    self.init(settings.filter { $0.isForAllCollections || $0.collectionID == collectionID })
  }
}
