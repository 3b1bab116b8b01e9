import Foundation

/// Some documents of a collection, and where the next ones are.
public struct CollectionPage<T: Decodable & Sendable>: Sendable {
  /// The documents.
  public let documents: [DocumentSnapshot<T>]
  /// What to give for the next page; `nil` on the last.
  public let nextPageToken: String?
  /// The name of what the collection was when it was read.
  public let tag: EntityTag?
}

extension CollectionReference {
  /// Reads a page of the collection in the order of names, unless nothing in the collection changed since `tag` was
  /// given; that costs the server almost nothing.
  ///
  ///     var tag: EntityTag?
  ///     while true {
  ///       if let page = try await hearth.collection("stops").page(as: Stop.self, unless: tag) {
  ///         tag = page.tag
  ///         show(page.documents)
  ///       }
  ///       try await Task.sleep(for: .seconds(60))
  ///     }
  /// - Parameter size: how many documents at most.
  /// - Returns: the page; `nil` where nothing changed.
  /// - Throws: as ``Hearth`` says.
  public func page<T: Decodable & Sendable>(
    as type: T.Type = [String: Value].self, size: Int = 300, after pageToken: String? = nil, unless tag: EntityTag? = nil
  ) async throws -> CollectionPage<T>? {
    let pageToken = pageToken.map { "&pageToken=\($0.percentEncoded)" } ?? ""
    let response = try await client.connection.send(
      HearthRequest("GET", client.target(path, "?pageSize=\(size)\(pageToken)"), headers: EntityTag.headers(unless: tag)))
    if response.status == 304 { return nil }
    let answer = try JSON(parsing: response.body)
    return CollectionPage(
      documents: try (answer["documents"]?.elements ?? []).map {
        try DocumentSnapshot(DocumentPayload(json: $0, in: client))
      },
      nextPageToken: answer["nextPageToken"]?.text, tag: EntityTag(response))
  }
}
