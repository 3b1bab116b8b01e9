import DatabaseService
import DocumentModel
import DocumentStore
import TestSupport
import WireFormat

/// A model of a database: a plain dictionary with every version of every document.
struct Twin {
  struct Version {
    var at: Int64
    /// The document, or `nil` if it does not exist from this version on.
    var document: Stored?
  }

  struct Stored: Equatable {
    var fields: MapValue
    var create: Int64
    var update: Int64
  }

  struct Transaction {
    var readVersion: Int64
    var isReadOnly: Bool
    var reads: [DocumentKey: Int64] = [:]
    var listed: Set<Listing> = []
    var isOver = false
  }

  /// The request of a listing of a whole collection.
  struct Listing: Hashable {
    var collection: ResourcePath
    var showMissing = false
    /// If set, the listing contains only documents with this field.
    var field: String?
  }

  private(set) var histories: [DocumentKey: [Version]] = [:]
  private(set) var lastVersion: Int64
  private(set) var versions: [Int64] = []
  var transactions: [TransactionID: Transaction] = [:]

  init(created: Int64) { lastVersion = created }

  func document(_ key: DocumentKey, at version: Int64 = .max) -> Stored? {
    histories[key]?.last { $0.at <= version }?.document
  }

  func documents(at version: Int64 = .max) -> [DocumentKey: Stored] {
    histories.compactMapValues { $0.last { $0.at <= version }?.document }
  }

  /// Returns the contents of a listing: documents with their update times, and missing documents with 0.
  func contents(of listing: Listing, at version: Int64 = .max) -> [DocumentKey: Int64] {
    let documents = documents(at: version)
    var keys = list(listing.collection, showMissing: listing.showMissing, at: version)
    if let field = listing.field { keys.removeAll { documents[$0]?.fields[field] == nil } }
    return Dictionary(uniqueKeysWithValues: keys.map { ($0, documents[$0]?.update ?? 0) })
  }

  // MARK: Commits

  /// The effect of one write: the update time it reports (`nil` for a delete, -1 for the time of the commit).
  struct Effect: Equatable {
    var updateTime: Int64?
    var transformResults: [Value]
  }

  /// Plans a commit without applying it, in the state at a version. Throws the status code that a client would see.
  func plan(_ writes: [Write], at version: Int64 = .max) throws(Status.CodeError) -> (
    changes: [DocumentKey: MapValue?], recreated: Set<DocumentKey>, effects: [Effect]
  ) {
    var now: [DocumentKey: MapValue?] = [:]
    var written: Set<DocumentKey> = []
    var recreated: Set<DocumentKey> = []
    var results: [[Value]] = []
    for write in writes {
      let stored = document(write.key, at: version)
      let fields = now[write.key] ?? stored?.fields
      let isWritten = written.contains(write.key)
      switch write.precondition {
      case .none: break
      case .exists(true): if fields == nil { throw Status.CodeError(isWritten ? .invalidArgument : .notFound) }
      case .exists(false): if fields != nil { throw Status.CodeError(isWritten ? .invalidArgument : .alreadyExists) }
      case .updateTime(let time):
        if isWritten || stored?.update ?? 0 != time.microseconds { throw Status.CodeError(.failedPrecondition) }
      }
      results.append([])
      switch write.operation {
      case .verify: continue
      case .delete:
        now[write.key] = .some(nil)
        recreated.insert(write.key)
      case .update(let body, let mask):
        guard let body = try? body.decoded() else { continue }
        var map = body
        if let mask {
          map = fields ?? MapValue()
          // Masks in the simulation name only top-level fields.
          for path in mask.paths { map[path.segments[0]] = body[path.segments[0]] }
        }
        for transform in write.transforms {
          results[results.count - 1].append(Self.apply(transform, to: &map))
        }
        now[write.key] = .some(map)
      }
      written.insert(write.key)
    }
    var changes: [DocumentKey: MapValue?] = [:]
    for (key, fields) in now {
      let stored = document(key, at: version)
      let isNew = recreated.contains(key) && fields != nil && stored != nil
      if stored?.fields != fields || isNew { changes[key] = .some(fields) }
    }
    let effects = writes.indices.map { index -> Effect in
      let key = writes[index].key
      let updateTime: Int64?
      if let change = changes[key] {
        updateTime = change == nil ? nil : -1
      } else if let stored = document(key, at: version) {
        updateTime = stored.update
      } else {
        updateTime = written.contains(key) ? nil : -1
      }
      return Effect(updateTime: updateTime, transformResults: results[index])
    }
    return (changes, recreated, effects)
  }

  mutating func commit(_ writes: [Write], at version: Int64) throws {
    let (changes, recreated, _) = try plan(writes)
    for (key, fields) in changes {
      let old = document(key)
      let stored = fields.map { fields in
        Stored(
          fields: fields, create: recreated.contains(key) ? version : old?.create ?? version, update: version)
      }
      histories[key, default: []].append(Version(at: version, document: stored))
    }
    if !changes.isEmpty {
      lastVersion = max(lastVersion, version)
      versions.append(version)
    }
  }

  private static func apply(_ transform: FieldTransform, to map: inout MapValue) -> Value {
    let name = transform.path.segments[0]
    switch transform.kind {
    case .increment(.integer(let n)):
      if case .integer(let old)? = map[name] { map[name] = .integer(old + n) } else { map[name] = .integer(n) }
      return map[name] ?? .null
    case .maximum(.integer(let n)):
      if case .integer(let old)? = map[name] { map[name] = .integer(max(old, n)) } else { map[name] = .integer(n) }
      return map[name] ?? .null
    case .appendMissingElements(let new):
      var list: [Value] = []
      if case .array(let old)? = map[name] { list = old }
      for value in new where !list.contains(value) { list.append(value) }
      map[name] = .array(list)
      return .null
    case .removeAllFromArray(let gone):
      var list: [Value] = []
      if case .array(let old)? = map[name] { list = old }
      map[name] = .array(list.filter { !gone.contains($0) })
      return .null
    default: return .null
    }
  }

  // MARK: Listings

  func list(_ collection: ResourcePath, showMissing: Bool, at version: Int64) -> [DocumentKey] {
    let documents = documents(at: version)
    var keys = Set(documents.keys.filter { $0.collection == collection })
    if showMissing {
      for key in documents.keys where key.path.isAtOrBelow(collection) {
        let depth = collection.segmentCount + 1
        var path = key.path
        while path.segmentCount > depth { path = path.parent }
        if let parent = DocumentKey(path) { keys.insert(parent) }
      }
    }
    return keys.sorted()
  }

  func list(_ collection: ResourcePath, orderBy name: String, descending: Bool, at version: Int64) -> [DocumentKey] {
    let documents = documents(at: version).filter { $0.key.collection == collection && $0.value.fields[name] != nil }
    let sorted = documents.keys.sorted { a, b in
      let order = Value.compare(documents[a]?.fields[name] ?? .null, documents[b]?.fields[name] ?? .null)
      return order == .equal ? a < b : order == .less
    }
    return descending ? sorted.reversed() : sorted
  }

  func collectionIDs(below parent: ResourcePath, at version: Int64) -> [String] {
    var ids: Set<[UInt8]> = []
    for key in documents(at: version).keys where key.path.isAtOrBelow(parent) && key.path != parent {
      ids.insert(Array(key.path.segments[parent.segmentCount]))
    }
    return ids.sorted { ResourceID.compare($0, $1) == .less }.map { String(decoding: $0, as: UTF8.self) }
  }
}

extension Status {
  /// A status of which only the code matters.
  struct CodeError: Error, Equatable {
    var code: Status.Code
    init(_ code: Status.Code) { self.code = code }
  }
}
