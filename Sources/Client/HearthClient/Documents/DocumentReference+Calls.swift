import Foundation

extension DocumentReference {
  /// Reads the document; ``DocumentSnapshot/exists`` tells whether there is one.
  ///
  ///     let ann = try await hearth.document("users/ann").get(as: Person.self)
  ///     let fields = try await hearth.document("users/ann").get().fields
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(as type: T.Type = [String: Value].self) async throws -> DocumentSnapshot<T> {
    guard let snapshot = try await client.get([self], as: type).first else {
      throw HearthClientError.unreadable("nothing about \(path)")
    }
    return snapshot
  }

  /// Reads the document unless it is as it was when `tag` was given; that costs the server almost nothing.
  ///
  ///     var (ann, tag) = try await reference.get(as: Person.self, unless: nil)
  ///     …
  ///     (ann, tag) = try await reference.get(as: Person.self, unless: tag)   // ann is nil: nothing changed
  /// - Returns: the document, `nil` where nothing changed, and the tag of what is there now.
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(
    as type: T.Type = [String: Value].self, unless tag: EntityTag?
  ) async throws -> (snapshot: DocumentSnapshot<T>?, tag: EntityTag?) {
    do {
      let response = try await client.connection.send(
        HearthRequest("GET", client.target(path), headers: EntityTag.headers(unless: tag)))
      if response.status == 304 { return (nil, tag) }
      let document = try DocumentPayload(json: JSON(parsing: response.body), in: client)
      return (try DocumentSnapshot(document), EntityTag(response))
    } catch let error as HearthClientError where error.code == .notFound {
      return (DocumentSnapshot(missing: self), nil)
    }
  }

  /// Makes the document what `value` is, whether there was one or not.
  /// - Parameter merge: keeps the fields that `value` does not have, also those within maps.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func set(
    _ value: some Encodable, merge: Bool = false, if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.set(value, at: self, merge: merge, if: precondition) }
  }

  /// Makes some fields of the document what they are in `value`; one that `value` does not have goes.
  /// - Throws: as ``Hearth`` says.
  @discardableResult
  public func set(_ value: some Encodable, mergeFields fields: [FieldPath]) async throws -> WriteResult {
    try await commit { try $0.set(value, at: self, mergeFields: fields) }
  }

  /// Makes the document.
  /// - Throws: ``HearthClientError/Code/alreadyExists`` where there is one, else as ``Hearth`` says.
  @discardableResult
  public func create(_ value: some Encodable) async throws -> WriteResult {
    try await commit { try $0.create(value, at: self) }
  }

  /// Changes some fields of a document that exists.
  /// - Throws: ``HearthClientError/Code/notFound`` where there is none, else as ``Hearth`` says.
  @discardableResult
  public func update(
    _ fields: [FieldPath: FieldValue], if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { $0.update(fields, at: self, if: precondition) }
  }

  /// Deletes the document; one that is not there is no error.
  /// - Throws: as ``Hearth`` says.
  public func delete(if precondition: Precondition? = nil) async throws {
    try await commit { $0.delete(self, if: precondition) }
  }

  @discardableResult
  private func commit(_ write: (inout WriteBatch) throws -> Void) async throws -> WriteResult {
    var batch = client.batch()
    try write(&batch)
    guard let result = try await batch.commit().first else { throw HearthClientError.unreadable("no result of a write") }
    return result
  }
}

extension Hearth {
  /// Reads several documents at one moment, and answers in the order of `references`.
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type = [String: Value].self
  ) async throws -> [DocumentSnapshot<T>] {
    try await get(references, as: type, within: nil)
  }

  /// Reads documents, within a transaction where one is named.
  func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type, within transaction: String?
  ) async throws -> [DocumentSnapshot<T>] {
    guard !references.isEmpty else { return [] }
    let answers = try await connection.callForElements(
      target("", ":batchGet"),
      .of([
        "documents": .array(references.map { .string($0.name) }), "transaction": transaction.map { .string($0) },
      ]))
    var found: [DocumentReference: DocumentSnapshot<T>] = [:]
    for answer in answers {
      let readTime = Timestamp(member: answer["readTime"])
      if let json = answer["found"] {
        let document = try DocumentPayload(json: json, in: self)
        found[document.reference] = try DocumentSnapshot(document, readTime: readTime)
      } else if let reference = answer["missing"]?.text.flatMap({ DocumentReference(name: $0, self) }) {
        found[reference] = DocumentSnapshot(missing: reference, readTime: readTime)
      }
    }
    return try references.map { reference in
      guard let snapshot = found[reference] else { throw HearthClientError.unreadable("nothing about \(reference)") }
      return snapshot
    }
  }
}
