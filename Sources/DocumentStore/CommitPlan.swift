import DocumentModel
import KeyValueStore
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
    /// Before it: the write changed nothing.
    case earlier(Int64)
    /// There is no document.
    case none
  }

  /// What one write did, but for the commit's version.
  struct Result: Sendable {
    var time: ResultTime
    var transformResults: [Value]
  }

  /// The version of every document the plan looked at; 0 where it was missing.
  private(set) var bases: [(key: DocumentKey, version: Int64)] = []
  private(set) var changes: [Change] = []
  private(set) var results: [Result] = []

  /// Works out a commit. Writes are applied in order, later ones seeing the earlier ones.
  ///
  /// Cost: two lookups per document, and linear in the documents written.
  /// - Throws: ``CommitError`` for the first write that cannot be done.
  init(_ writes: [Write], reader: inout DocumentReader, requestTime: Timestamp) throws(CommitError) {
    var staged: [DocumentKey: Staged] = [:]
    var order: [DocumentKey] = []
    results.reserveCapacity(writes.count)
    for write in writes {
      var document: Staged
      if let earlier = staged[write.key] {
        document = earlier
      } else {
        document = Staged(base: try Self.read(write.key, &reader))
        bases.append((write.key, document.base?.update ?? 0))
        order.append(write.key)
      }
      results.append(try document.apply(write, requestTime: requestTime))
      staged[write.key] = document
    }
    for key in order {
      if let document = staged[key], document.isChanged { changes.append(try Self.change(key, document)) }
    }
  }

  private static func read(_ key: DocumentKey, _ reader: inout DocumentReader) throws(CommitError) -> Staged.Base? {
    do {
      guard let stored = try reader.document(key) else { return nil }
      return Staged.Base(
        create: stored.createVersion, update: stored.updateVersion,
        fields: EncodedFields(canonical: Array(stored.fields)))
    } catch {
      throw .storage(error)
    }
  }

  private static func change(_ key: DocumentKey, _ document: Staged) throws(CommitError) -> Change {
    Change(
      key: key, fields: document.fields, createVersion: document.keptCreateVersion,
      index: try index(key, from: document.base?.fields, to: document.fields))
  }

  /// Works out the index entries of a change, and checks that the new state is not too large.
  static func index(
    _ key: DocumentKey, from old: EncodedFields?, to new: EncodedFields?
  ) throws(CommitError) -> IndexChanges {
    do throws(WireError) {
      if let new, try DocumentSize.bytes(key: key, fields: new) > Limits.documentBytesMax {
        throw WireError.model(.documentTooLarge)
      }
      return try (old ?? .none).withMap { (oldMap) throws(WireError) in
        try (new ?? .none).withMap { (newMap) throws(WireError) in
          if newMap.bytes.count >= Self.manyEntriesBytesMin, try IndexChanges.count(newMap) > Limits.indexEntriesMax {
            throw .model(.tooManyIndexEntries)
          }
          return try IndexChanges(from: oldMap, to: newMap)
        }
      }
    } catch {
      if case .model(let error) = error { throw .model(error) }
      throw .wire(error)
    }
  }

  /// No smaller document can have more entries than ``Limits/indexEntriesMax``: an element takes two bytes or more.
  private static let manyEntriesBytesMin = 2 * Limits.indexEntriesMax
}

/// A document while the writes of one commit pass over it.
private struct Staged {
  struct Base {
    var create: Int64
    var update: Int64
    var fields: EncodedFields
  }

  /// How the store has it.
  let base: Base?
  /// The fields now.
  private(set) var fields: EncodedFields?
  /// The create version to keep, `nil` where there is none or this commit creates the document.
  private(set) var keptCreateVersion: Int64?
  /// Whether any write changed it, even if a later one changed it back: deleting and creating makes a new document.
  private(set) var isRecreated = false
  private var lastChangeIsCommit = false

  init(base: Base?) {
    self.base = base
    fields = base?.fields
    keptCreateVersion = base?.create
  }

  /// Whether the commit must write it.
  var isChanged: Bool {
    switch (base, fields) {
    case (nil, nil): false
    case (let base?, let fields?): isRecreated || base.fields != fields
    default: true
    }
  }

  mutating func apply(_ write: Write, requestTime: Timestamp) throws(CommitError) -> CommitPlan.Result {
    try check(write)
    let effect: WriteApplication.Effect
    do { effect = try WriteApplication.apply(write, to: fields, requestTime: requestTime) } catch { throw .wire(error) }
    if effect.fields != fields {
      lastChangeIsCommit = true
      if effect.fields == nil || fields == nil {
        isRecreated = isRecreated || base != nil
        keptCreateVersion = nil
      }
      fields = effect.fields
    }
    return CommitPlan.Result(time: resultTime(of: write), transformResults: effect.transformResults)
  }

  private func resultTime(of write: Write) -> CommitPlan.ResultTime {
    if case .delete = write.operation { return .none }
    guard fields != nil else { return .none }
    if lastChangeIsCommit { return .commit }
    return base.map { .earlier($0.update) } ?? .none
  }

  private func check(_ write: Write) throws(CommitError) {
    switch write.precondition {
    case .none: break
    case .exists(true): if fields == nil { throw .documentMissing(write.key) }
    case .exists(false): if fields != nil { throw .documentExists(write.key) }
    case .updateTime(let required):
      // A document that this commit already changed has no version yet that a client could name.
      let stored = fields == nil || lastChangeIsCommit ? 0 : base?.update ?? 0
      guard stored == required.microseconds else {
        throw .versionMismatch(write.key, stored: stored, required: required.microseconds)
      }
    }
  }
}
