/// The ETag of a document or a collection. Keep it to find out later whether anything changed.
public struct EntityTag: Sendable, Hashable, Codable {
  private let text: String

  init?(_ response: HearthResponse) {
    guard let text = response.headers["etag"] else { return nil }
    self.text = text
  }

  static func headers(unless tag: EntityTag?) -> [String: String] { tag.map { ["If-None-Match": $0.text] } ?? [:] }
}
