import DocumentModel
import WireFormat

extension ServerClient {
  /// A state that a document must have so that a change is committed.
  enum Condition: Equatable {
    case missing
    case updated(Timestamp)
  }

  /// Returns the oldest time at which the database can be read, or `nil` if the server is too old to report it, or is
  /// not a Hearth server.
  /// - Throws: ``CommandFailure`` if the request fails.
  func oldestReadTime() throws -> Timestamp? {
    guard let body = try find("GET", databaseTarget + "/history") else { return nil }
    return try JSONText.read(body) { root in root.member("oldest")?.text.flatMap { Timestamp(rfc3339: $0.utf8) } }
  }
}

extension JSONWriter {
  /// Appends the condition of a write as a member.
  mutating func append(_ condition: ServerClient.Condition) {
    key("currentDocument")
    beginObject()
    switch condition {
    case .missing: add("exists", false)
    case .updated(let time):
      key("updateTime")
      timestamp(time)
    }
    endObject()
  }
}
