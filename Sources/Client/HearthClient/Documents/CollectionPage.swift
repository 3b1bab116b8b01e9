import Foundation

/// A page of a collection's documents.
public struct CollectionPage<T: Decodable & Sendable>: Sendable {
  /// The documents, in the order of their names.
  public let documents: [DocumentSnapshot<T>]
  /// The token for the next page, or `nil` on the last page.
  public let nextPageToken: String?
  /// The tag of the collection's state when the page was read.
  public let tag: EntityTag?
}

extension CollectionReference {
  /// Reads a page of the collection, in the order of names, unless the collection is unchanged since `tag` was
  /// returned. An unchanged collection costs the server almost nothing.
  ///
  ///     var tag: EntityTag?
  ///     while true {
  ///       if let page = try await hearth.collection("stops").page(as: Stop.self, unless: tag) {
  ///         tag = page.tag
  ///         show(page.documents)
  ///       }
  ///       try await Task.sleep(for: .seconds(60))
  ///     }
  /// - Parameters:
  ///   - size: the greatest number of documents in the page.
  ///   - pageToken: the ``CollectionPage/nextPageToken`` of the previous page, or `nil` for the first page.
  /// - Returns: the page, or `nil` if the collection is unchanged.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a document does not match `T`.
  public func page<T: Decodable & Sendable>(
    as type: T.Type = [String: Value].self, size: Int = 300, after pageToken: String? = nil,
    unless tag: EntityTag? = nil
  ) async throws -> CollectionPage<T>? {
    let pageToken = pageToken.map { "&pageToken=\($0.percentEncoded)" } ?? ""
    let response = try await client.connection.send(
      HearthRequest(
        "GET", client.target(path, "?pageSize=\(size)\(pageToken)"), headers: EntityTag.headers(unless: tag)))
    if response.status == 304 { return nil }
    let json = try JSON(parsing: response.body)
    return CollectionPage(
      documents: try (json["documents"]?.elements ?? []).map {
        try DocumentSnapshot(DocumentPayload(json: $0, in: client))
      },
      nextPageToken: json["nextPageToken"]?.text, tag: EntityTag(response))
  }
}
