/// A document as it was at one moment, or that there was none.
public struct DocumentSnapshot<T: Decodable & Sendable>: Sendable {
  /// Which document.
  public let reference: DocumentReference
  /// Whether there was one.
  public let exists: Bool
  /// The document as a `T`; `nil` where there was none.
  public let data: T?
  /// All fields; none where there was no document.
  public let fields: [String: Value]
  /// When the document was made.
  public let createTime: Timestamp?
  /// When the document was changed last; a ``Precondition`` can ask for it.
  public let updateTime: Timestamp?
  /// The moment of the snapshot, where the server told it.
  public let readTime: Timestamp?

  /// The document's id.
  public var id: String { reference.id }
}

extension DocumentSnapshot {
  init(_ document: DocumentPayload, readTime: Timestamp? = nil) throws {
    reference = document.reference
    exists = true
    data = try DocumentDecoder(reference: document.reference).decode(T.self, from: .map(document.fields))
    fields = document.fields
    (createTime, updateTime) = (document.createTime, document.updateTime)
    self.readTime = readTime
  }

  init(missing reference: DocumentReference, readTime: Timestamp? = nil) {
    self.reference = reference
    (exists, data, fields, createTime, updateTime) = (false, nil, [:], nil, nil)
    self.readTime = readTime
  }
}

/// A document as the API answers it, not decoded yet.
struct DocumentPayload: Sendable {
  let reference: DocumentReference
  let fields: [String: Value]
  let createTime: Timestamp?
  let updateTime: Timestamp?

  init(json: JSON, in client: Hearth) throws {
    guard let reference = json["name"]?.text.flatMap({ DocumentReference(name: $0, client) }) else {
      throw HearthClientError.unreadable("a document without a name")
    }
    self.reference = reference
    fields = try Value.fields(json["fields"], in: client)
    createTime = Timestamp(member: json["createTime"])
    updateTime = Timestamp(member: json["updateTime"])
  }
}

extension Timestamp {
  /// The time that a member of an answer holds.
  init?(member: JSON?) {
    guard let text = member?.text else { return nil }
    self.init(text: text)
  }
}
