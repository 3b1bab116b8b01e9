import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Foundation
import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import Testing
import TestSupport
import WireFormat

/// Runs random operations on the service and on its twin, and compares them step by step. Requests with an ID are
/// repeated at random.
///
/// `HEARTH_SIMULATION_STEPS` makes each run longer. `HEARTH_SIMULATION_SEED` repeats a run.
@Suite struct RandomOperationsTests {
  private static let seeds = TestSeeds.of("HEARTH_SIMULATION_SEED", otherwise: [1, 2, 3, 77])
  private static let steps = ProcessInfo.processInfo.environment["HEARTH_SIMULATION_STEPS"].flatMap { Int($0) } ?? 1500

  @Test(arguments: seeds) func aStoreInMemoryMatchesItsTwin(seed: UInt64) throws {
    let store = try LMDBStore.open(.inMemory(mapBytes: 1 << 30))
    try run(seed: seed, steps: Self.steps) { store }
  }

  @Test(arguments: seeds.suffix(1)) func aStoreOnDiskMatchesItsTwin(seed: UInt64) throws {
    let directory = try TemporaryDirectory()
    try run(seed: seed, steps: Self.steps / 3) { () throws(StorageError) in
      try LMDBStore.open(LMDBOptions(path: directory.path + "/data.mdb", mapBytes: 256 << 20))
    }
  }

  @Test(arguments: seeds.prefix(1)) func aStoreWithALogMatchesItsTwin(seed: UInt64) throws {
    let store = try LoggedMemory.open()
    try run(seed: seed, steps: Self.steps) { store }
  }

  /// The store is closed and opened again within the simulation.
  @Test(arguments: seeds.prefix(1)) func aStoreWithALogOnDiskMatchesItsTwin(seed: UInt64) throws {
    let directory = try TemporaryDirectory()
    try run(seed: seed, steps: Self.steps / 3) { () throws(StorageError) in
      try LoggedStore.open(
        LMDBOptions(path: directory.path + "/data.mdb", mapBytes: 256 << 20), settings: LoggedMemory.settings)
    }
  }

  private func run(
    seed: UInt64, steps: Int, open: @escaping @Sendable () throws(StorageError) -> any KeyValueStore
  ) throws {
    var simulation = try Simulation(seed: seed, open: open)
    for step in 0..<steps {
      do {
        try simulation.step()
      } catch {
        let text = "\(simulation.doing): \(error)".replacingOccurrences(of: Simulation.longID, with: "LONG")
        Issue.record("seed \(seed), step \(step), \(text)")
        return
      }
    }
    do { try simulation.compareEverything() } catch { Issue.record("seed \(seed), at the end: \(error)") }
  }
}

/// A difference that stopped a simulation.
struct Difference: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

/// A request with an ID, and its outcome.
private struct DoneRequest {
  enum Outcome {
    case commit(CommitOutcome)
    case batch([Result<WriteResult, Status>])
  }

  var id: RequestID
  var writes: [Write]
  var transaction: TransactionID?
  var outcome: Outcome
}

private struct Simulation {
  private var random: SplitMix
  private let open: @Sendable () throws(StorageError) -> any KeyValueStore
  private let time = SteppedTime()
  private let id: DatabaseID
  private var registry: DatabaseRegistry
  private var service: FirestoreService
  private var twin: Twin
  private var openIDs: [TransactionID] = []
  /// Requests with an ID that succeeded.
  private var done: [DoneRequest] = []
  private(set) var doing = "nothing"

  private let collections = ["c", "d", "c/a/s", "c/__id7__/s", "d/m/s", "d/m/s/n/t"].map(collection)
  private let ids = ["a", "b", "m", "n", "__id7__", "__id12__", "\u{E9}", "e\u{301}", "a\u{0}", Self.longID]
  static let longID = String(repeating: "k", count: 700)

  init(seed: UInt64, open: @escaping @Sendable () throws(StorageError) -> any KeyValueStore) throws {
    random = SplitMix(seed: seed)
    self.open = open
    guard let id = DatabaseID(project: "p") else { throw Difference("no id") }
    self.id = id
    (registry, service) = Self.start(open, time, Self.indexes(&random))
    guard let created = try registry.database(id) else { throw Difference("no database") }
    self.created = try created.read { Int64(bitPattern: try $0.meta(.created)) }
    twin = Twin(created: self.created)
  }

  private static func start(
    _ open: @escaping @Sendable () throws(StorageError) -> any KeyValueStore, _ time: SteppedTime,
    _ indexes: IndexConfiguration?
  ) -> (DatabaseRegistry, FirestoreService) {
    let registry = DatabaseRegistry(clock: Clock { time.now }, idleSeconds: nil, indexes: { _ in indexes }) {
      (_) throws(StorageError) in try open()
    }
    return (registry, FirestoreService(databases: registry, mode: .emulator))
  }

  mutating func step() throws {
    if random.chance(oneIn: 3) { time.now += random.pick([1, 50, 1000, 20_000]) }
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<35: try commit(in: nil)
    case 35..<40: try batchWrite()
    case 40..<46: try begin()
    case 46..<56: try readInTransaction()
    case 56..<64: try commitTransaction()
    case 64..<69: try get()
    case 69..<72: try repeatRequest()
    case 72..<76: try batchGet()
    case 76..<88: try list()
    case 88..<93: try listCollectionIDs()
    case 93: if random.chance(oneIn: 3) { try clear() }
    case 94: if random.chance(oneIn: 2) { try restart() }
    case 95: time.now -= random.pick([10, 1_000_000])
    default: try compareOneCollection()
    }
  }

  // MARK: Random choices

  /// Returns a random index configuration, or `nil` to keep the current one. No result may depend on it.
  private static func indexes(_ random: inout SplitMix) -> IndexConfiguration? {
    if random.chance(oneIn: 3) { return nil }
    var configuration = IndexConfiguration()
    for id in ["c", "d", "s", "t"] {
      for scope in [IndexDefinition.Scope.collection, .collectionGroup] where random.chance(oneIn: 3) {
        let fields = ["n", "list", "text"].shuffled(using: &random).prefix(2).map { name in
          let isArray = name == "list" && random.chance(oneIn: 2)
          return IndexDefinition.Field(field(name), isArray ? .contains : random.pick([.ascending, .descending]))
        }
        configuration.indexes.append(IndexDefinition(collectionID: id, scope: scope, fields: fields))
      }
      for name in ["n", "list"] where random.chance(oneIn: 4) {
        configuration.fields.append(FieldIndexing(collectionID: id, path: field(name), entries: []))
      }
    }
    return configuration
  }

  private mutating func key() -> DocumentKey {
    let path = random.pick(collections).appending(random.pick(ids))
    guard let key = DocumentKey(path) else { preconditionFailure("\(path) is not a document path") }
    return key
  }

  private mutating func fields() -> MapValue {
    var map = MapValue()
    for name in ["n", "list", "text"] where random.chance(oneIn: 2) {
      switch name {
      case "n": map[name] = .integer(random.pick([1, 2, 3, 1 << 53 + 1]))
      case "list": map[name] = .array([.integer(random.pick([1, 2])), .string(random.pick(["x", "\u{E9}"]))])
      default:
        map[name] = random.pick([
          .string("t"), .double(1), .null, .boolean(true), .string(String(repeating: "l", count: 1490)),
        ])
      }
    }
    return map
  }

  private mutating func write() -> Write {
    let key = key()
    var precondition = Precondition.none
    switch Int.random(in: 0..<8, using: &random) {
    case 0: precondition = .exists(true)
    case 1: precondition = .exists(false)
    case 2:
      let time = random.chance(oneIn: 5) ? 77 : twin.document(key)?.update ?? 77
      precondition = .updateTime(Timestamp(uncheckedMicroseconds: time))
    default: break
    }
    var transforms: [FieldTransform] = []
    if random.chance(oneIn: 3) {
      transforms.append(
        FieldTransform(field("n"), random.pick([.increment(.integer(random.pick([0, 1, 2]))), .maximum(2)])))
    }
    if random.chance(oneIn: 4) {
      transforms.append(
        FieldTransform(
          field("list"), random.pick([.appendMissingElements(["x", 3]), .removeAllFromArray([1, "\u{E9}"])])))
    }
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<3: return Write(.delete, key: key, precondition: precondition)
    case 3: return Write(.verify, key: key, precondition: precondition)
    case 4..<7:
      let mask = FieldMask(["n", "list", "text"].filter { _ in random.chance(oneIn: 2) }.map(field))
      return Write(
        .update(EncodedFields(fields()), mask: mask), key: key, transforms: transforms, precondition: precondition)
    default:
      return Write(
        .update(EncodedFields(fields()), mask: nil), key: key, transforms: transforms, precondition: precondition)
    }
  }

  /// Returns a readable time, and the version that a read at it must show.
  private mutating func moment() -> (ConsistencySelector, Int64) {
    guard random.chance(oneIn: 2) else { return (.latest, .max) }
    var version = time.now
    if let some = twin.versions.randomElement(using: &random), random.chance(oneIn: 4) == false {
      version = some - random.pick([0, 0, 1])
    }
    if version < created { version = created }
    if version > time.now, version > twin.lastVersion { return (.latest, .max) }
    return (.readTime(Timestamp(uncheckedMicroseconds: version)), version)
  }

  private var created: Int64

  // MARK: Writing

  private mutating func commit(in transaction: TransactionID?) throws {
    let writes = (0..<random.pick([0, 1, 1, 1, 2, 4])).map { _ in write() }
    doing = "commit of \(writes) in \(transaction.map { "\($0.bytes)" } ?? "no transaction")"
    var expected: Status.Code?
    var effects: [Twin.Effect] = []
    do { effects = try twin.plan(writes).effects } catch { expected = error.code }
    if let transaction, let state = twin.transactions[transaction] {
      if state.isOver {
        expected = state.isReadOnly ? .invalidArgument : .aborted
      } else if state.isReadOnly, !writes.isEmpty {
        expected = .invalidArgument
      } else {
        twin.transactions[transaction]?.isOver = true
        let isStale =
          state.reads.contains { twin.document($0.key)?.update ?? 0 != $0.value }
          || state.listed.contains { twin.contents(of: $0) != twin.contents(of: $0, at: state.readVersion) }
        // The commit fails with `invalidArgument` before the writer checks for conflicts.
        if isStale, expected != .invalidArgument { expected = .aborted }
      }
    }
    let requestID = random.chance(oneIn: 3) ? RequestID.random(using: &random) : nil
    let result = try send(writes, in: transaction, requestID)
    switch result {
    case .failure(let status):
      guard status.code == expected else { throw Difference("\(status), expected \(String(describing: expected))") }
    case .success(let outcome):
      guard expected == nil else { throw Difference("success, expected \(String(describing: expected))") }
      try check(outcome.results, effects, at: outcome.version.microseconds)
      try twin.commit(writes, at: outcome.version.microseconds)
      if let requestID, !writes.isEmpty {
        done.append(DoneRequest(id: requestID, writes: writes, transaction: transaction, outcome: .commit(outcome)))
      }
    }
  }

  private func send(
    _ writes: [Write], in transaction: TransactionID?, _ requestID: RequestID?
  ) throws -> Result<CommitOutcome, Status> {
    do {
      return try wait { done in
        try service.commit(
          writes, transaction: transaction, in: id, as: .admin, requestID: requestID, completion: done)
      }
    } catch { return .failure(Status(error, database: id)) }
  }

  /// Sends a request again, perhaps after other commits, a restart or a clearing. The twin stays as it is.
  private mutating func repeatRequest() throws {
    guard let request = done.randomElement(using: &random) else { return }
    doing = "repetition of \(request)"
    switch request.outcome {
    case .commit(let outcome):
      let result = try send(request.writes, in: request.transaction, request.id)
      guard try result.get() == outcome else { throw Difference("\(result), expected \(outcome)") }
      let other = try send(request.writes + [write()], in: request.transaction, request.id)
      guard case .failure(let status) = other, status.code == .invalidArgument else { throw Difference("\(other)") }
    case .batch(let outcomes):
      let results = try wait { done in
        try service.batchWrite(request.writes, in: id, as: .admin, requestID: request.id, completion: done)
      }
      guard results == outcomes else { throw Difference("\(results), expected \(outcomes)") }
    }
  }

  private func check(_ results: [WriteResult], _ effects: [Twin.Effect], at version: Int64) throws {
    guard version > twin.lastVersion else { throw Difference("version \(version) after \(twin.lastVersion)") }
    let expected = effects.map { effect in
      WriteResult(
        updateTime: effect.updateTime.map { Timestamp(uncheckedMicroseconds: $0 == -1 ? version : $0) },
        transformResults: effect.transformResults)
    }
    guard results == expected else { throw Difference("results \(results), expected \(expected)") }
  }

  private mutating func batchWrite() throws {
    var writes: [Write] = []
    for _ in 0..<random.pick([1, 3, 6]) {
      let write = write()
      if !writes.contains(where: { $0.key == write.key }) { writes.append(write) }
    }
    doing = "batchWrite of \(writes)"
    let requestID = random.chance(oneIn: 3) ? RequestID.random(using: &random) : nil
    let results = try wait { done in
      try service.batchWrite(writes, in: id, as: .admin, requestID: requestID, completion: done)
    }
    if let requestID, results.allSatisfy({ (try? $0.get()) != nil }) {
      done.append(DoneRequest(id: requestID, writes: writes, transaction: nil, outcome: .batch(results)))
    }
    guard results.count == writes.count else { throw Difference("\(results.count) results") }
    // Results are compared by the final documents, because the order of independent writes does not matter.
    for (write, result) in zip(writes, results) {
      var expected: Status.Code?
      var effects: [Twin.Effect] = []
      do { effects = try twin.plan([write]).effects } catch { expected = error.code }
      switch result {
      case .failure(let status):
        guard status.code == expected else { throw Difference("\(status), expected \(String(describing: expected))") }
      case .success(let written):
        guard expected == nil else { throw Difference("success, expected \(String(describing: expected))") }
        guard written.transformResults == effects[0].transformResults else { throw Difference("\(written)") }
        // A deletion reports no time, so search for it in the history.
        let isDeletion = effects[0].updateTime == nil
        let version = isDeletion ? try versionOfLastChange(of: write.key) : written.updateTime?.microseconds ?? 0
        if try !twin.plan([write]).changes.isEmpty { try twin.commit([write], at: version) }
      }
    }
  }

  /// Returns the version at which a document was deleted: the first one at which it is missing.
  private func versionOfLastChange(of key: DocumentKey) throws -> Int64 {
    guard let database = try registry.database(id) else { return 0 }
    return try database.read { reader in
      guard let row = try reader.collection(key.collection) else { return twin.lastVersion }
      var (low, high) = (twin.document(key)?.update ?? created, try reader.lastVersion())
      while low + 1 < high {
        let middle = low + (high - low) / 2
        if try reader.document(key.id, in: row.number, at: middle) == nil { high = middle } else { low = middle }
      }
      return high
    }
  }

  private mutating func clear() throws {
    doing = "clear"
    let result: Result<Void, Status> = try wait { done in try service.clear(id, completion: done) }
    try result.get()
    let over = twin.transactions
    twin = Twin(created: try meta(.created))
    twin.transactions = over.mapValues {
      var state = $0; state.isOver = true; return state
    }
    created = twin.lastVersion
  }

  private mutating func restart() throws {
    doing = "restart"
    registry.closeAll()
    (registry, service) = Self.start(open, time, Self.indexes(&random))
    _ = try registry.database(id)
    // After a restart, IDs from before a clearing are unknown instead of over, so forget all IDs.
    twin.transactions = [:]
    openIDs = []
  }

  private func meta(_ name: MetaKey) throws -> Int64 {
    guard let database = try registry.database(id) else { throw Difference("no database") }
    return try database.read { Int64(bitPattern: try $0.meta(name)) }
  }

  // MARK: Transactions

  private mutating func begin() throws {
    doing = "begin"
    let isReadOnly = random.chance(oneIn: 3)
    let transaction = try service.beginTransaction(
      isReadOnly ? .readOnly(nil) : .readWrite(retrying: nil), in: id, as: .admin)
    twin.transactions[transaction] = Twin.Transaction(readVersion: try meta(.lastVersion), isReadOnly: isReadOnly)
    openIDs.append(transaction)
    if openIDs.count > 6 {
      let oldest = openIDs.removeFirst()
      try service.rollback(oldest, in: id, as: .admin)
      twin.transactions[oldest] = nil
    }
  }

  private mutating func readInTransaction() throws {
    guard let transaction = openIDs.randomElement(using: &random), let state = twin.transactions[transaction],
      !state.isOver
    else { return }
    if random.chance(oneIn: 5) {
      let collection = random.pick(collections)
      doing = "list of \(collection) in transaction"
      let listing = try list(collection, .transaction(transaction), at: state.readVersion)
      if !state.isReadOnly { twin.transactions[transaction]?.listed.insert(listing) }
      return
    }
    let key = key()
    doing = "get of \(key) in transaction"
    try compare(key, .transaction(transaction), at: state.readVersion)
    if !state.isReadOnly {
      let version = twin.document(key, at: state.readVersion)?.update ?? 0
      twin.transactions[transaction]?.reads[key] = version
    }
  }

  private mutating func commitTransaction() throws {
    guard let transaction = openIDs.randomElement(using: &random) else { return }
    try commit(in: transaction)
  }

  // MARK: Reading

  private mutating func get() throws {
    let key = key()
    let (consistency, version) = moment()
    doing = "get of \(key) at \(consistency)"
    try compare(key, consistency, at: version)
  }

  private func compare(_ key: DocumentKey, _ consistency: ConsistencySelector, at version: Int64) throws {
    let expected = twin.document(key, at: version)
    do {
      let found = try service.getDocument(key, in: id, as: .admin, consistency: consistency) { document, _ in
        try Self.stored(document)
      }
      guard found == expected else { throw Difference("\(found), expected \(String(describing: expected))") }
    } catch let status as Status {
      guard status.code == .notFound, expected == nil else {
        throw Difference("\(status), expected \(String(describing: expected))")
      }
    }
  }

  private static func stored(_ document: StoredDocument) throws -> Twin.Stored {
    Twin.Stored(
      fields: try EncodedFields(canonical: Array(document.fields)).decoded(), create: document.createVersion,
      update: document.updateVersion)
  }

  private mutating func batchGet() throws {
    let keys = (0..<random.pick([1, 5, 12])).map { _ in key() }
    let (consistency, version) = moment()
    doing = "batchGet of \(keys) at \(consistency)"
    var request = BatchGetDocumentsRequest(keys)
    request.consistency = consistency
    let cursor = try #require(try service.batchGetDocuments(request, in: id, as: .admin).slice())
    var found: [DocumentKey: Twin.Stored] = [:]
    var order: [DocumentKey] = []
    var random = random
    while !cursor.isAtEnd {
      try cursor.slice { key, document in
        order.append(key)
        if let document { found[key] = try Self.stored(document) }
        return !random.chance(oneIn: 3)
      }
      // Later slices must show the same state, whatever is committed in between.
      if random.chance(oneIn: 4) {
        let write = [Write(.update(clockFields(), mask: nil), key: keys[0])]
        let result: Result<CommitOutcome, Status> = try wait { done in
          try service.commit(write, in: id, as: .admin, completion: done)
        }
        try commitInTwin(write, result)
      }
    }
    self.random = random
    let expected = Dictionary(
      Set(keys).compactMap { key in twin.document(key, at: min(version, cursor.readTime.microseconds)).map { (key, $0) }
      }
    ) { $1 }
    guard found == expected else { throw Difference("found \(found), expected \(expected)") }
    let there = Set(keys).filter { expected[$0] != nil }.sorted()
    let wanted = there + Set(keys).filter { expected[$0] == nil }.sorted()
    guard order == wanted else { throw Difference("order \(order), expected \(wanted)") }
  }

  private mutating func commitInTwin(_ writes: [Write], _ result: Result<CommitOutcome, Status>) throws {
    try twin.commit(writes, at: try result.get().version.microseconds)
  }

  private func clockFields() -> EncodedFields { EncodedFields(MapValue([("n", .integer(time.now % 7))])) }

  private mutating func list() throws {
    let (consistency, version) = moment()
    let collection = random.pick(collections)
    doing = "list of \(collection) at \(consistency)"
    try list(collection, consistency, at: version)
  }

  @discardableResult
  private mutating func list(
    _ collection: ResourcePath, _ consistency: ConsistencySelector, at version: Int64
  ) throws -> Twin.Listing {
    var listing = Twin.Listing(collection: collection)
    var request = ListDocumentsRequest(collection)
    request.consistency = consistency
    request.pageSize = random.pick([0, 1, 2, 3, 100])
    let expected: [DocumentKey]
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      request.showMissing = true
      listing.showMissing = true
      expected = twin.list(collection, showMissing: true, at: version)
    case 1:
      let name = random.pick(["n", "list", "text"])
      listing.field = name
      let descending = random.chance(oneIn: 2)
      request.orderBy = descending ? "\(name) desc" : name
      expected = twin.list(collection, orderBy: name, descending: descending, at: version)
    case 2:
      request.orderBy = "__name__ desc"
      expected = twin.list(collection, showMissing: false, at: version).reversed()
    default: expected = twin.list(collection, showMissing: false, at: version)
    }
    doing += " by '\(request.orderBy)', missing \(request.showMissing), pages of \(request.pageSize)"
    var found: [DocumentKey] = []
    repeat {
      let before = found.count
      request.pageToken = try service.listPage(request, in: id) { document in
        found.append(document.key)
        let stored = try document.stored.map { try Self.stored($0) }
        guard stored == twin.document(document.key, at: version) else {
          throw Difference("\(document.key) is \(String(describing: stored))")
        }
      }
      let limit = request.pageSize == 0 ? 300 : request.pageSize
      guard found.count - before <= limit, found.count - before == limit || request.pageToken.isEmpty else {
        throw Difference("a page of \(found.count - before)")
      }
    } while !request.pageToken.isEmpty
    guard found == expected else { throw Difference("found \(found), expected \(expected)") }
    return listing
  }

  private mutating func listCollectionIDs() throws {
    let (consistency, version) = moment()
    let parent = random.chance(oneIn: 2) ? ResourcePath.root : key().path
    doing = "listCollectionIds of \(parent) at \(consistency)"
    let size = random.pick([0, 1, 2])
    var (found, token): ([String], [UInt8]) = ([], [])
    repeat {
      var request = ListCollectionIdsRequest(below: parent)
      request.pageSize = size
      request.pageToken = token
      request.consistency = consistency
      let page = try service.listCollectionIds(request, in: id, as: .admin)
      found += page.ids
      token = page.nextPageToken
    } while !token.isEmpty
    let expected = twin.collectionIDs(below: parent, at: version)
    guard found == expected else { throw Difference("found \(found), expected \(expected)") }
  }

  private mutating func compareOneCollection() throws {
    let collection = random.pick(collections)
    doing = "list of \(collection)"
    try list(collection, .latest, at: .max)
  }

  mutating func compareEverything() throws {
    guard let database = try registry.database(id) else { throw Difference("no database") }
    let problems = try database.read { try DatabaseCheck.run($0.snapshot).problems }
    guard problems.isEmpty else { throw Difference("\(problems)") }
    for path in collections {
      for id in ids {
        if let key = DocumentKey(path.appending(id)) { try compare(key, .latest, at: .max) }
      }
      for version in twin.versions.shuffled(using: &random).prefix(20) {
        try list(path, .readTime(Timestamp(uncheckedMicroseconds: version)), at: version)
      }
    }
  }
}
