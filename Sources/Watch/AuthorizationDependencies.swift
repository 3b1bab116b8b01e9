package import DocumentModel

/// The data on which the authorization of a listener depends, besides its request and the rules.
package struct AuthorizationDependencies: Sendable {
  /// The documents that the rules have read, with their versions; 0 for a document that does not exist.
  package var documents: [(key: DocumentKey, version: Int64)]
  /// Whether the decision depends on the time.
  package var usesTime: Bool

  package init(documents: [(key: DocumentKey, version: Int64)] = [], usesTime: Bool = false) {
    self.documents = documents
    self.usesTime = usesTime
  }

  /// Adds the dependencies of another decision, if both decisions must hold.
  package mutating func formUnion(_ other: AuthorizationDependencies) {
    for document in other.documents where !documents.contains(where: { $0.key == document.key }) {
      documents.append(document)
    }
    usesTime = usesTime || other.usesTime
  }
}
