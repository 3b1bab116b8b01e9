import Foundation

/// A position from which a listener can resume, after a pause or in another process. The server then sends only the
/// changes since.
///
/// A server accepts a token for some days. After that, it sends all results again.
public struct ResumeToken: Sendable, Hashable, Codable {
  let text: String
}

/// The results of a query as of `readTime`, assembled from the events of a listener.
struct ListenedResults: Sendable {
  /// The next step of the listener after an event.
  enum Step: Equatable {
    /// Waits for the next event.
    case wait
    /// The results are consistent. `isNew` is `true` if they changed since they were last consistent.
    case consistent(isNew: Bool)
    /// The results differ from those of the server: discards them and listens again.
    case startAnew
  }

  private(set) var documents: [DocumentReference: DocumentPayload] = [:]
  /// Removed documents that are not in ``documents``, because an earlier listener, whose token this one resumed
  /// from, received them.
  private(set) var departed: Set<DocumentReference> = []
  private(set) var token: ResumeToken?
  private(set) var readTime: Timestamp?
  /// Whether ``documents`` contains all results.
  private(set) var isComplete: Bool
  private var isCurrent = false
  private var hasChanged = true

  init(resumingFrom token: ResumeToken?) {
    self.token = token
    isComplete = token == nil
  }

  /// Prepares for a new connection. Discards events for which no resume token was received, because the server
  /// sends them again.
  mutating func reconnect() {
    isCurrent = false
    if token == nil { forget() }
  }

  /// Applies a ListenResponse.
  /// - Throws: ``HearthClientError`` if the server ends the target, or the event is malformed.
  mutating func take(_ event: JSON, from client: Hearth) throws -> Step {
    if let change = event["targetChange"] { return try take(targetChange: change) }
    if let change = event["documentChange"] {
      let document = try DocumentPayload(json: change["document"] ?? .null, in: client)
      if change["targetIds"]?.elements.isEmpty ?? true { remove(document.reference) } else { put(document) }
    } else if let change = event["documentDelete"] ?? event["documentRemove"] {
      guard let reference = change["document"]?.text.flatMap({ DocumentReference(name: $0, client) }) else {
        throw HearthClientError.unreadable("a removal contains no document name")
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
        ?? HearthClientError(.unavailable, "The server closed the listener.")
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
