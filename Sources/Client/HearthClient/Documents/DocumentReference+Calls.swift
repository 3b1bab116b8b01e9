import Foundation

extension DocumentReference {
  /// Reads the document. ``DocumentSnapshot/exists`` reports whether it exists.
  ///
  ///     let ann = try await hearth.document("users/ann").get(as: Person.self)
  ///     let fields = try await hearth.document("users/ann").get().fields
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if the document does not match `T`.
  public func get<T: Decodable & Sendable>(as type: T.Type = [String: Value].self) async throws -> DocumentSnapshot<T> {
    guard let snapshot = try await client.get([self], as: type).first else {
      throw HearthClientError.unreadable("the response does not include \(path)")
    }
    return snapshot
  }

  /// Reads the document unless it is unchanged since `tag` was returned. An unchanged document costs the server
  /// almost nothing.
  ///
  ///     var (ann, tag) = try await reference.get(as: Person.self, unless: nil)
  ///     …
  ///     (ann, tag) = try await reference.get(as: Person.self, unless: tag)   // ann is nil: nothing changed
  /// - Returns: the document, or `nil` if it is unchanged, and the tag of its current state.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if the document does not match `T`.
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

  /// Creates the document, or replaces it if it exists.
  /// - Parameter merge: whether to keep the fields that `value` does not have, also inside maps.
  /// - Throws: ``HearthClientError`` if the request fails, `EncodingError` if `value` cannot be encoded as a document.
  @discardableResult
  public func set(
    _ value: some Encodable, merge: Bool = false, if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.set(self, value, merge: merge, if: precondition) }
  }

  /// Creates the document with these fields, or replaces it if it exists.
  ///
  ///     try await hearth.document("todos/milk").set(["title": title, "owner": owner, "madeAt": .serverTimestamp])
  /// - Parameter merge: whether to keep the fields that `fields` does not have, also inside maps.
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func set(
    _ fields: [String: (any FieldValueConvertible)?], merge: Bool = false, if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { $0.set(self, fields, merge: merge, if: precondition) }
  }

  /// Creates the document with these fields, or replaces it if it exists.
  /// - Parameter merge: whether to keep the fields that `fields` does not have, also inside maps.
  /// - Throws: ``HearthClientError`` if the request fails.
  @discardableResult
  public func set(
    _ fields: [String: FieldValue], merge: Bool = false, if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { $0.set(self, fields, merge: merge, if: precondition) }
  }

  /// Sets some fields to their contents in `value`. Removes those that `value` does not have.
  /// - Throws: ``HearthClientError`` if the request fails, `EncodingError` if `value` cannot be encoded as a document.
  @discardableResult
  public func set(_ value: some Encodable, mergeFields fields: [FieldPath]) async throws -> WriteResult {
    try await commit { try $0.set(self, value, mergeFields: fields) }
  }

  /// Creates the document.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/alreadyExists`` if the document
  ///   exists; `EncodingError` if `value` cannot be encoded as a document.
  @discardableResult
  public func create(_ value: some Encodable) async throws -> WriteResult {
    try await commit { try $0.create(self, value) }
  }

  /// Creates the document with these fields.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/alreadyExists`` if the document exists.
  @discardableResult
  public func create(_ fields: [String: (any FieldValueConvertible)?]) async throws -> WriteResult {
    try await commit { $0.create(self, fields) }
  }

  /// Creates the document with these fields.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/alreadyExists`` if the document exists.
  @discardableResult
  public func create(_ fields: [String: FieldValue]) async throws -> WriteResult {
    try await commit { $0.create(self, fields) }
  }

  /// Changes some fields of an existing document.
  ///
  ///     try await hearth.document("todos/milk").update(["owner": owner, "asked": .increment(1), "draft": .delete])
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/notFound`` if the document does not exist.
  @discardableResult
  public func update(
    _ fields: [FieldPath: FieldValue], if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { $0.update(self, fields, if: precondition) }
  }

  /// Changes some fields of an existing document.
  /// - Throws: ``HearthClientError``, with the code ``HearthClientError/Code/notFound`` if the document does not exist.
  @discardableResult
  public func update(
    _ fields: [FieldPath: (any FieldValueConvertible)?], if precondition: Precondition? = nil
  ) async throws -> WriteResult {
    try await commit { $0.update(self, fields, if: precondition) }
  }

  /// Deletes the document. Succeeds if it does not exist.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func delete(if precondition: Precondition? = nil) async throws {
    try await commit { $0.delete(self, if: precondition) }
  }

  @discardableResult
  private func commit(_ write: (inout WriteBatch) throws -> Void) async throws -> WriteResult {
    var batch = client.batch()
    try write(&batch)
    guard let result = try await batch.commit().first else {
      throw HearthClientError.unreadable("the response contains no write result")
    }
    return result
  }
}

extension Hearth {
  /// Reads several documents at one time. Returns them in the order of `references`.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a document does not match `T`.
  public func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type = [String: Value].self
  ) async throws -> [DocumentSnapshot<T>] {
    try await get(references, as: type, within: nil)
  }

  /// Reads documents, in a transaction if `transaction` is not `nil`.
  func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type, within transaction: String?
  ) async throws -> [DocumentSnapshot<T>] {
    guard !references.isEmpty else { return [] }
    let responses = try await connection.callForElements(
      target("", ":batchGet"),
      .of([
        "documents": .array(references.map { .string($0.name) }), "transaction": transaction.map { .string($0) },
      ]))
    var found: [DocumentReference: DocumentSnapshot<T>] = [:]
    for response in responses {
      let readTime = Timestamp(member: response["readTime"])
      if let json = response["found"] {
        let document = try DocumentPayload(json: json, in: self)
        found[document.reference] = try DocumentSnapshot(document, readTime: readTime)
      } else if let reference = response["missing"]?.text.flatMap({ DocumentReference(name: $0, self) }) {
        found[reference] = DocumentSnapshot(missing: reference, readTime: readTime)
      }
    }
    return try references.map { reference in
      guard let snapshot = found[reference] else {
        throw HearthClientError.unreadable("the response does not include \(reference)")
      }
      return snapshot
    }
  }
}
