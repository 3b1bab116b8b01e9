/// The name of what a document or a collection was when it was read. Keep it, and ask later whether anything changed.
public struct EntityTag: Sendable, Hashable, Codable {
  private let text: String

  init?(_ response: HearthResponse) {
    guard let text = response.headers["etag"] else { return nil }
    self.text = text
  }

  static func headers(unless tag: EntityTag?) -> [String: String] { tag.map { ["If-None-Match": $0.text] } ?? [:] }
}
