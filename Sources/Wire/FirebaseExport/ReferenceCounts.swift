/// The references in imported documents, by what an import does with them.
package struct ReferenceCounts: Equatable, Sendable {
  /// References to the export's own database that were changed, because the documents go to another one.
  package var rewritten = 0
  /// References to other databases, which are kept.
  package var foreign = 0

  package init(rewritten: Int = 0, foreign: Int = 0) {
    self.rewritten = rewritten
    self.foreign = foreign
  }

  /// Adds the counts of more documents.
  package static func += (total: inout ReferenceCounts, more: ReferenceCounts) {
    total.rewritten += more.rewritten
    total.foreign += more.foreign
  }
}
