package import DocumentModel

extension IndexConfiguration {
  /// How a field of the collections of an id is indexed by itself.
  ///
  /// What is said of the field counts, else of the nearest map around it, else of all fields of the collections, else
  /// of all fields of all collections.
  package func entries(of path: FieldPath, in collectionID: String) -> Set<FieldIndexing.Entries> {
    if fields.isEmpty { return FieldIndexing.automatic }
    var best: (rank: Int, entries: Set<FieldIndexing.Entries>)?
    for field in fields {
      let isNamed = field.collectionID.utf8.elementsEqual(collectionID.utf8)
      let rank: Int
      if isNamed, !field.path.isAllFields, field.path.isPrefix(of: path) {
        rank = 2 + field.path.segments.count
      } else if isNamed, field.path.isAllFields {
        rank = 2
      } else if field.path.isAllFields, field.collectionID.utf8.elementsEqual(FieldIndexing.allCollections.utf8) {
        rank = 1
      } else {
        continue
      }
      if rank > best?.rank ?? 0 { best = (rank, field.entries) }
    }
    return best?.entries ?? FieldIndexing.automatic
  }
}
