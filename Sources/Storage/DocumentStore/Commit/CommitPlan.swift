import DocumentModel
import KeyValue
import WireFormat

/// A commit worked out against one state of the store: what to write, and what that rests on.
///
/// Made on the caller's thread against a snapshot, as a hint. The writer compares ``bases`` with what is stored when
/// the commit's turn comes and makes the plan anew inside the write transaction where something moved.
struct CommitPlan: Sendable {
  /// A document that the commit leaves different from how it found it.
  struct Change: Sendable {
    var key: DocumentKey
    /// The fields after the commit; `nil` for a deletion.
    var fields: EncodedFields?
    /// When the document came into being; `nil` stands for this commit.
    var createVersion: Int64?
    /// What happens to the index entries.
    var index: IndexChanges
  }

  /// When a written document last changed.
  enum ResultTime: Sendable {
    /// With this commit.
    case commit
    /// Before it: the commit left the document as it was.
    case earlier(Int64)
    /// There is no document any more.
    case none
  }

  /// What one write did, but for the commit's version.
  struct Result: Sendable {
    var time: ResultTime
    var transformResults: [Value]
  }

  /// The version of every document that the plan, or the commit's judge, looked at; 0 where it was missing.
  private(set) var bases: [(key: DocumentKey, version: Int64)] = []
  private(set) var changes: [Change] = []
  private(set) var results: [Result] = []
  /// The indexes that the entries of ``changes`` are for.
  let indexGeneration: UInt64

  /// Works out a commit. Writes are applied in order, later ones seeing the earlier ones. A judge has its say before
  /// any precondition.
  ///
  /// Cost: two lookups per document, and linear in the documents written; and what the judge does.
  /// - Throws: ``CommitError`` for the first write that cannot be done.
  init(
    _ request: CommitRequest, reader: inout SnapshotReader, indexes: IndexCatalog, requestTime: Timestamp
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
        reader.snapshot)
    }
    if let refusal { throw refusal }
    for document in documents where document.isChanged {
      changes.append(try Self.change(document, request.edition, indexes))
    }
    // However often a document is written, each result tells what became of it in the end.
    let times = documents.map(\.resultTime)
    results = effects.map { Result(time: times[$0.place], transformResults: $0.transformResults) }
  }

  /// About how much memory the plan holds beside the request it was made of, in bytes.
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
      index: try index(document.key, from: document.base?.fields, to: document.fields, edition, indexes))
  }

  /// Works out the index entries of a change, and checks that the new state is not too large.
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
          // An element takes two bytes or more, so smaller documents cannot have so many entries.
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
