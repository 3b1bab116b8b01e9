import DocumentModel
import KeyValue
import WireFormat

/// The changes that a commit makes, computed against one state of the store.
///
/// The caller's thread makes a plan against a snapshot. Before the writer uses it, it compares ``bases`` with the
/// stored versions; if any differs, it makes a new plan inside the write transaction.
struct CommitPlan: Sendable {
  /// A document that the commit changes.
  struct Change: Sendable {
    var key: DocumentKey
    /// The fields after the commit, or `nil` for a deletion.
    var fields: EncodedFields?
    /// When the document was created, or `nil` if this commit creates it.
    var createVersion: Int64?
    /// The bytes of the fields before the commit, or `nil` if the document did not exist.
    var storedFieldsBytes: Int?
    var index: IndexChanges

    /// The bytes that the change adds to the documents of the database. Negative if they become fewer.
    var growth: Int {
      let path = key.path.bytes.count
      return DocumentUse.bytes(path: path, fields: fields?.bytes.count)
        - DocumentUse.bytes(path: path, fields: storedFieldsBytes)
    }
  }

  /// When a written document last changed.
  enum ResultTime: Sendable {
    /// At this commit.
    case commit
    /// Earlier: the commit left the document as it was.
    case earlier(Int64)
    /// The document no longer exists.
    case none
  }

  /// The result of one write, except for the commit's version.
  struct Result: Sendable {
    var time: ResultTime
    var transformResults: [Value]
  }

  /// The version of every document that the plan or the authorizer read; 0 for a missing document.
  private(set) var bases: [(key: DocumentKey, version: Int64)] = []
  private(set) var changes: [Change] = []
  private(set) var results: [Result] = []
  /// The generation of the index catalog that the entries in ``changes`` are made for.
  let indexGeneration: UInt64

  /// Plans a commit. Writes are applied in order; later ones see the earlier ones. The authorizer decides before
  /// any failed precondition is reported.
  ///
  /// Cost: two lookups per document, linear in the documents written, plus the cost of the authorizer.
  /// - Throws: ``CommitError`` if the authorizer denies the commit, otherwise for the first write that fails;
  ///   ``CommitError/tooLongForLoop`` if `isOnLoop` is `true` and the authorizer needs another thread.
  init(
    _ request: CommitRequest, reader: inout SnapshotReader, indexes: IndexCatalog, requestTime: Timestamp,
    isOnLoop: Bool = false
  ) throws(CommitError) {
    indexGeneration = indexes.generation
    let writes = request.writes
    var documents: [StagedDocument] = []
    var places: [DocumentKey: Int] = [:]
    var effects: [(place: Int, transformResults: [Value])] = []
    var refusal: CommitError?
    for write in writes {
      let place: Int
      if let known = places[write.key] {
        place = known
      } else {
        place = documents.count
        places[write.key] = place
        let document = StagedDocument(write.key, base: try Self.read(write.key, &reader))
        documents.append(document)
        bases.append((write.key, document.base?.update ?? 0))
      }
      do throws(CommitError) { try documents[place].check(write) } catch {
        guard request.authorizer != nil else { throw error }
        refusal = refusal ?? error
      }
      effects.append((place, try documents[place].apply(write, requestTime: requestTime)))
    }
    for place in documents.indices { documents[place].encode() }
    if let authorizer = request.authorizer {
      bases += try authorizer.authorize(
        Self.proposed(documents, writes, places), requestTime: requestTime, isInTransaction: request.reads != nil,
        isOnLoop: isOnLoop, reader.snapshot)
    }
    if let refusal { throw refusal }
    for document in documents where document.isChanged {
      changes.append(try Self.change(document, request.edition, indexes))
    }
    // Every result of a document written more than once has the document's final time.
    let times = documents.map(\.resultTime)
    results = effects.map { Result(time: times[$0.place], transformResults: $0.transformResults) }
  }

  /// The approximate memory of the plan in addition to its request, in bytes.
  var bytes: Int {
    var sum = 128 * (bases.count + results.count)
    for change in changes {
      let index = change.index
      sum += 256 + (change.fields?.bytes.count ?? 0)
      sum += index.bytes.count + 32 * index.fields.count + 48 * index.entries.count
    }
    return sum
  }

  private static func proposed(
    _ documents: [StagedDocument], _ writes: [Write], _ places: [DocumentKey: Int]
  ) -> [ProposedDocument] {
    var proposed = documents.map { document in
      ProposedDocument(key: document.key, before: document.base?.fields, after: document.fields, writes: [])
    }
    for write in writes {
      if let place = places[write.key] { proposed[place].writes.append(write) }
    }
    return proposed
  }

  private static func read(_ key: DocumentKey, _ reader: inout SnapshotReader) throws(CommitError) -> StagedDocument
    .Base?
  {
    do {
      guard let stored = try reader.document(key) else { return nil }
      return StagedDocument.Base(
        create: stored.createVersion, update: stored.updateVersion,
        fields: EncodedFields(canonical: Array(stored.fields)))
    } catch {
      throw .storage(error)
    }
  }

  private static func change(
    _ document: StagedDocument, _ edition: Edition, _ indexes: IndexCatalog
  ) throws(CommitError) -> Change {
    Change(
      key: document.key, fields: document.fields, createVersion: document.keptCreateVersion,
      storedFieldsBytes: document.base?.fields.bytes.count,
      index: try index(document.key, from: document.base?.fields, to: document.fields, edition, indexes))
  }

  /// Returns the index entries that a change adds and removes.
  /// - Throws: ``CommitError`` if the new state is too large, or the bytes of a document are not valid fields.
  static func index(
    _ key: DocumentKey, from old: EncodedFields?, to new: EncodedFields?, _ edition: Edition = .standard,
    _ indexes: IndexCatalog
  ) throws(CommitError) -> IndexChanges {
    let indexing = indexes.collection(key.collection.lastSegment)
    do throws(WireError) {
      if let new, try DocumentSize.bytes(key: key, fields: new) > edition.documentBytesMax {
        throw WireError.model(.documentTooLarge)
      }
      return try (old ?? .none).withMap { (oldMap) throws(WireError) in
        try (new ?? .none).withMap { (newMap) throws(WireError) in
          // An array element takes two bytes or more, so smaller documents cannot have so many entries.
          let countMax = newMap.bytes.count / 2 * (1 + (indexing?.maintained.count ?? 0))
          if countMax >= Limits.indexEntriesMax,
            try IndexChanges.count(newMap, indexing: indexing) > Limits.indexEntriesMax
          {
            throw .model(.tooManyIndexEntries)
          }
          return try IndexChanges(from: oldMap, to: newMap, indexing: indexing)
        }
      }
    } catch {
      if case .model(let error) = error { throw .model(error) }
      throw .wire(error)
    }
  }
}
