import Foundation

/// Where a listener can go on, after a pause or in another process: whoever comes back with it is told only what changed.
///
/// A server remembers for days; to whom it no longer does, it tells everything again.
public struct ResumeToken: Sendable, Hashable, Codable {
  let text: String
}

/// What a listener was told, put together: the results of a query as of `readTime`.
struct ListenedResults: Sendable {
  /// What is to be done after an event.
  enum Step: Equatable {
    /// Wait for the next one.
    case wait
    /// The results are consistent; `true` where they are not what they were when they were last.
    case consistent(isNew: Bool)
    /// What is held is not what the server has: forget it and listen anew.
    case startAnew
  }

  private(set) var documents: [DocumentReference: DocumentPayload] = [:]
  /// Who left and was not among the documents: results of a listener that left them to a later one with its token.
  private(set) var departed: Set<DocumentReference> = []
  private(set) var token: ResumeToken?
  private(set) var readTime: Timestamp?
  /// Whether the documents are all results.
  private(set) var isComplete: Bool
  private var isCurrent = false
  private var hasChanged = true

  init(resumingFrom token: ResumeToken?) {
    self.token = token
    isComplete = token == nil
  }

  /// A new connection begins: what was told without a token behind it is told again.
  mutating func reconnect() {
    isCurrent = false
    if token == nil { forget() }
  }

  /// Takes a ListenResponse.
  /// - Throws: ``HearthClientError`` where the server ends the target, or for what is not understood.
  mutating func take(_ event: JSON, from client: Hearth) throws -> Step {
    if let change = event["targetChange"] { return try take(targetChange: change) }
    if let change = event["documentChange"] {
      let document = try DocumentPayload(json: change["document"] ?? .null, in: client)
      if change["targetIds"]?.elements.isEmpty ?? true { remove(document.reference) } else { put(document) }
    } else if let change = event["documentDelete"] ?? event["documentRemove"] {
      guard let reference = change["document"]?.text.flatMap({ DocumentReference(name: $0, client) }) else {
        throw HearthClientError.unreadable("a removal without a name")
      }
      remove(reference)
    } else if let filter = event["filter"] {
      guard isComplete, filter["count"]?.integer ?? 0 != documents.count else { return .wait }
      forget()
      return .startAnew
    } else if let error = event["error"] {
      throw HearthClientError(status: error["code"]?.integer ?? 500, body: event.data)
    }
    return .wait
  }

  private mutating func take(targetChange change: JSON) throws -> Step {
    switch change["targetChangeType"]?.text ?? "NO_CHANGE" {
    case "RESET": forget()
    case "REMOVE":
      throw change["cause"].map { HearthClientError(grpcStatus: $0) }
        ?? HearthClientError(.unavailable, "The server ended the listener.")
    case "CURRENT":
      isCurrent = true
      advance(change)
    case "NO_CHANGE" where isCurrent:
      advance(change)
      guard readTime != nil else { break }
      defer { hasChanged = false }
      return .consistent(isNew: hasChanged)
    default: break
    }
    return .wait
  }

  private mutating func advance(_ change: JSON) {
    if let text = change["resumeToken"]?.text { token = ResumeToken(text: text) }
    if let time = Timestamp(member: change["readTime"]) { readTime = time }
  }

  private mutating func put(_ document: DocumentPayload) {
    documents[document.reference] = document
    departed.remove(document.reference)
    hasChanged = true
  }

  private mutating func remove(_ reference: DocumentReference) {
    if documents.removeValue(forKey: reference) == nil, !isComplete { departed.insert(reference) }
    hasChanged = true
  }

  private mutating func forget() {
    documents = [:]
    departed = []
    token = nil
    isComplete = true
    hasChanged = true
  }
}
