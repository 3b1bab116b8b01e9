import DocumentModel

/// Iterates the documents of a running server at and below a path, in name order. It uses only calls that every client
/// can make: lists that show missing documents, and IDs of collections.
///
/// Unlike an export of a data directory, it is not a snapshot: it may include writes that happen meanwhile.
struct ServerDocumentIterator {
  private let client: ServerClient

  init(_ client: ServerClient) { self.client = client }

  private static let pageSize = 300

  /// Passes every document that exists at and below `root` to `body`.
  /// - Throws: ``CommandFailure`` if a request fails, or the error of `body`.
  func forEach(
    below root: ResourcePath, withFields: Bool, _ body: (ServerClient.Found) throws -> Void
  ) throws {
    if let key = DocumentKey(root) {
      if let document = try client.get(key) { try body(document) }
      try descend(below: root, withFields, body)
    } else if root.isRoot {
      try descend(below: root, withFields, body)
    } else {
      try walk(root, withFields, body)
    }
  }

  /// Passes every collection at and below a path to `body` that contains documents or has some below it.
  /// - Throws: ``CommandFailure`` if a request fails, or the error of `body`.
  func forEachCollection(below root: ResourcePath, _ body: (ResourcePath) throws -> Void) throws {
    if root.isCollection { return try collections(root, body) }
    for id in try client.collectionIDs(below: root) { try collections(root.appending(id), body) }
  }

  private func collections(_ path: ResourcePath, _ body: (ResourcePath) throws -> Void) throws {
    try body(path)
    try forEachPage(path, withFields: false) { document in
      for id in try client.collectionIDs(below: document.key.path) {
        try collections(document.key.path.appending(id), body)
      }
    }
  }

  private func descend(
    below document: ResourcePath, _ withFields: Bool, _ body: (ServerClient.Found) throws -> Void
  ) throws {
    for id in try client.collectionIDs(below: document) { try walk(document.appending(id), withFields, body) }
  }

  private func walk(
    _ collection: ResourcePath, _ withFields: Bool, _ body: (ServerClient.Found) throws -> Void
  ) throws {
    try forEachPage(collection, withFields: withFields) { document in
      if document.createTime != nil { try body(document) }
      try descend(below: document.key.path, withFields, body)
    }
  }

  private func forEachPage(
    _ collection: ResourcePath, withFields: Bool, _ body: (ServerClient.Found) throws -> Void
  ) throws {
    var token: String?
    repeat {
      let page = try client.list(
        collection, pageSize: Self.pageSize, pageToken: token, showMissing: true, withFields: withFields)
      for document in page.documents { try body(document) }
      token = page.nextPageToken
    } while token != nil
  }
}
