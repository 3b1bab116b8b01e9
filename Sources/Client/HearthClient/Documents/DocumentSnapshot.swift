/// A document at one time. It need not exist.
public struct DocumentSnapshot<T: Decodable & Sendable>: Sendable {
  /// The reference of the document.
  public let reference: DocumentReference
  /// Whether the document exists.
  public let exists: Bool
  /// The document as a `T`, or `nil` if it does not exist.
  public let data: T?
  /// All fields. Empty if the document does not exist.
  public let fields: [String: Value]
  /// The time at which the document was created.
  public let createTime: Timestamp?
  /// The time of the last change, which a ``Precondition`` can require.
  public let updateTime: Timestamp?
  /// The time of the snapshot, or `nil` if the response does not contain it.
  public let readTime: Timestamp?

  /// The document ID.
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

/// A document in a response, before decoding.
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
  /// The time in a member of a response, or `nil` if it is missing or malformed.
  init?(member: JSON?) {
    guard let text = member?.text else { return nil }
    self.init(text: text)
  }
}
