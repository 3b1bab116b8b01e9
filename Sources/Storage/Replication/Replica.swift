package import KeyValue
package import LogEngine
package import SharedLog
import Synchronization

/// The data files of a project on one node, which share one log.
///
/// Each file has a mark: the position in the log up to which it has every commit of its own. A crash loses what is
/// after the marks, so a replica continues at the least of them, and skips for each store what its mark covers. The
/// marks of stores that nobody writes to are moved forward after each ``Settings/logBytesPerMark`` of log.
///
/// One thread at a time calls ``apply(_:)``, in the order of the log. Other threads may open stores and append
/// meanwhile.
package final class Replica: Sendable {
  /// The sizes of a replica.
  package struct Settings: Sendable {
    /// Those of each store.
    package var store = LoggedStoreSettings()
    /// The log after which the marks of all stores are moved forward, in bytes. A node that was killed reads about so
    /// much again, and what was in its memtables.
    package var logBytesPerMark = 16 << 20
    /// The most stores. A node refuses a log that names more.
    package var storesMax = 1000

    package init() {}
  }

  /// The secret of the log.
  package let secret: UInt64
  private let files: ReplicaFiles
  private let settings: Settings
  let sealed: SealedStores?
  let state: Mutex<State>

  struct Member: Sendable {
    let store: LoggedStore
    let log: StoreLog
    /// The position of the data file when it was opened.
    let origin: LogPosition
  }

  struct State: Sendable {
    var members: [StoreName: Member] = [:]
    /// The position up to which every store has its commits, when those that their writers append now are over.
    var applied: LogPosition
    /// The greatest mark when the replica was opened.
    var lastMark = LogPosition()
    /// The bytes of the log since the marks were moved.
    var unmarkedBytes = 0
    /// The bytes of the log since the replica was opened.
    var logBytes = 0
    var log: WeakLog = WeakLog()
    var isClosed = false
    /// Whether the files are being replaced, so that none may be made.
    var isDetached = false
  }

  struct WeakLog: Sendable { weak var log: (any ProjectLog)? }

  /// The error with which writes to the data file of a store fail, or `nil`; see `KeyValueStore.writeFailure`.
  package var writeFailure: StorageError? {
    state.withLock { $0.members.values.lazy.compactMap(\.store.writeFailure).first }
  }

  /// Opens the stores that exist.
  /// - Throws: ``ReplicaError/notAReplica(path:)`` if a file was written without the cluster; ``ReplicaError/storage(_:)``.
  package init(
    _ files: ReplicaFiles, secret: UInt64, sealed: SealedStores? = nil, settings: Settings = Settings()
  ) throws(ReplicaError) {
    self.files = files
    self.secret = secret
    self.settings = settings
    self.sealed = sealed
    state = Mutex(try Self.opened(files.existing, files, secret, sealed, settings, log: nil))
  }

  /// Opens stores that exist.
  private static func opened(
    _ stores: [StoreName], _ files: ReplicaFiles, _ secret: UInt64, _ sealed: SealedStores?, _ settings: Settings,
    log: (any ProjectLog)?
  ) throws(ReplicaError) -> State {
    var members: [StoreName: Member] = [:]
    for name in stores {
      members[name] = try open(name, files, secret, sealed, settings, origin: LogPosition(), log: log)
    }
    let least = members.values.map(\.origin).min { $0.sequence < $1.sequence }
    var state = State(members: members, applied: least ?? LogPosition())
    state.lastMark = members.values.map(\.origin).max { $0.sequence < $1.sequence } ?? LogPosition()
    state.log = WeakLog(log: log)
    return state
  }

  /// Opens stores in place of those that ``detach(flushes:)`` closed, whose files were replaced.
  /// - Throws: ``ReplicaError``. There are no stores then.
  func attach(_ stores: [StoreName]) throws(ReplicaError) {
    let log = state.withLock { $0.log.log }
    let opened = try Self.opened(stores, files, secret, sealed, settings, log: log)
    state.withLock { if !$0.isClosed { $0 = opened } }
  }

  private static func open(
    _ name: StoreName, _ files: ReplicaFiles, _ secret: UInt64, _ sealed: SealedStores?, _ settings: Settings,
    origin: LogPosition, log project: (any ProjectLog)?
  ) throws(ReplicaError) -> Member {
    let base: any MarkedStore
    let isNew: Bool
    do throws(StorageError) {
      base = try files.open(name)
      isNew = try base.statistics().entries == 0
    } catch { throw .storage(error) }
    let log = StoreLog(of: name, sealed: sealed, isNew: isNew, project)
    do throws(LoggedStore.ReplicaRefusal) {
      let store = try LoggedStore.openReplica(base, log: log, secret: secret, origin: origin, settings: settings.store)
      return Member(store: store, log: log, origin: store.position)
    } catch {
      switch error {
      case .unmarked, .otherLog: throw .notAReplica(path: base.path)
      case .storage(let error): throw .storage(error)
      }
    }
  }

  /// The stores of documents.
  package var databases: [StoreName] {
    state.withLock { state in state.members.keys.filter { $0.database != nil } }.sorted { $0.text < $1.text }
  }

  /// The position up to which every store has its commits.
  package var applied: LogPosition { state.withLock { $0.applied } }

  /// The greatest position up to which a data file had its commits when the replica was opened.
  package var lastMark: LogPosition { state.withLock { $0.lastMark } }

  /// Whether every store is at ``applied``. Before that, some have later commits.
  var isWhole: Bool { state.withLock { $0.applied.sequence >= $0.lastMark.sequence } }

  /// The stores, sorted by name.
  package var stores: [StoreName] { state.withLock { $0.members.keys.sorted { $0.text < $1.text } } }

  /// Connects the stores with the log to which they append.
  func connect(_ log: any ProjectLog) {
    state.withLock { state in
      state.log = WeakLog(log: log)
      for member in state.members.values { member.log.connect(log) }
    }
  }

  /// Returns the replica of a store for reading, or `nil` if the log has not named the store yet.
  package func loggedStore(_ name: StoreName) -> LoggedStore? { state.withLock { $0.members[name]?.store } }

  /// Returns a store as a node reads it that does not own the project, or `nil` if the log has not named it yet.
  package func followedStore(_ name: StoreName) -> FollowedStore? {
    loggedStore(name).map { FollowedStore(name: name, store: $0) }
  }

  /// Opens a store for its owner in an epoch, creating it if it does not exist.
  /// - Throws: ``ReplicaError``.
  func store(_ name: StoreName, in lease: EpochLease) throws(ReplicaError) -> ReplicatedStore {
    let member = try member(name)
    return ReplicatedStore(name: name, lease: lease, store: member.store, log: member.log)
  }

  /// Returns a store, creating it if it does not exist. The file of a new store is opened with the lock held: an entry
  /// of it that another node appended must not be applied meanwhile.
  private func member(_ name: StoreName) throws(ReplicaError) -> Member {
    let result = state.withLock { state -> Result<Member, ReplicaError> in
      if let member = state.members[name] { return .success(member) }
      guard !state.isClosed, !state.isDetached else { return .failure(.storage(.notOwner(of: name.text, owner: nil))) }
      guard state.members.count < settings.storesMax else {
        return .failure(.storage(.tooManyDatabases(limit: settings.storesMax)))
      }
      do throws(ReplicaError) {
        let member = try Self.open(
          name, files, secret, sealed, settings, origin: state.applied, log: state.log.log)
        state.members[name] = member
        return .success(member)
      } catch { return .failure(error) }
    }
    return try result.get()
  }

  // MARK: Entries

  /// Applies entries that continue those before, and skips for each store what it has. If a data file cannot be
  /// written, call it again with the same entries. Returns the stores of which there was an entry.
  /// - Throws: ``ReplicaError``.
  @discardableResult
  package func apply(_ entries: [SharedEntry]) throws(ReplicaError) -> Set<StoreName> {
    var changed: Set<StoreName> = []
    for entry in entries {
      try checkMarks(entry)
      if entry.kind == .batch { changed.insert(try applyBatch(entry)) }
      note(entry.position, bytes: entry.body.count)
    }
    moveMarksIfDue()
    return changed
  }

  /// Checks that the marks of stores that are ahead are on the line of the log.
  private func checkMarks(_ entry: SharedEntry) throws(ReplicaError) {
    let isOnLine = state.withLock { state in
      entry.position.sequence > state.lastMark.sequence
        || state.members.values.allSatisfy { member in
          member.origin.sequence != entry.position.sequence || member.origin == entry.position
        }
    }
    guard isOnLine else { throw .diverged }
  }

  private func applyBatch(_ entry: SharedEntry) throws(ReplicaError) -> StoreName {
    let sequence = entry.position.sequence
    guard let batch = StoreBatch(entry.body) else {
      throw .malformed(sequence: sequence, detail: "it does not begin with the name of a store")
    }
    let known = state.withLock { $0.members[batch.store] }
    guard known != nil || batch.isFirst else { throw .missingStore(batch.store, sequence: sequence) }
    let member: Member
    if let known { member = known } else { member = try self.member(batch.store) }
    member.log.noteBatch()
    guard member.store.position.sequence < sequence else { return batch.store }
    let content = try opened(batch, sequence: sequence)
    do throws(StorageError) {
      try Self.withBytes(content) { (bytes) throws(StorageError) in
        try member.store.apply(bytes, at: entry.position)
      }
    } catch {
      if case .corruption(_, let detail) = error { throw .malformed(sequence: sequence, detail: detail) }
      throw .storage(error)
    }
    return batch.store
  }

  /// Returns the bytes of a commit batch.
  private func opened(_ batch: StoreBatch, sequence: UInt64) throws(ReplicaError) -> ArraySlice<UInt8> {
    let mustBeSealed = sealed?.stores.contains(batch.store) ?? false
    guard batch.isSealed else {
      guard !mustBeSealed else { throw .notSealedHere(batch.store, sequence: sequence) }
      return batch.content
    }
    guard let opened = sealed?.seal.open(batch.content, of: batch.store) else {
      throw .notSealedHere(batch.store, sequence: sequence)
    }
    return opened[...]
  }

  private static func withBytes(
    _ bytes: ArraySlice<UInt8>, _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Void
  ) throws(StorageError) {
    var failure: StorageError?
    bytes.withUnsafeBytes { bytes in
      do throws(StorageError) { try body(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Notes that the log has entries up to a position, and that no store lacks one of them, except for the one whose
  /// writer appended the last and holds its lock. Returns whether ``moveMarksIfDue()`` should be called.
  @discardableResult
  func note(_ position: LogPosition, bytes: Int) -> Bool {
    state.withLock { state in
      if state.applied.sequence < position.sequence { state.applied = position }
      state.unmarkedBytes += bytes
      state.logBytes += bytes
      return state.unmarkedBytes >= settings.logBytesPerMark
    }
  }

  /// Moves the marks of all stores forward if enough of the log was applied. The caller applies nothing meanwhile.
  func moveMarksIfDue() {
    let members = state.withLock { state -> [Member] in
      guard state.unmarkedBytes >= settings.logBytesPerMark, !state.isClosed else { return [] }
      state.unmarkedBytes = 0
      return Array(state.members.values)
    }
    // If it fails, a restart reads more of the log.
    for member in members { try? member.store.advance(to: { self.applied }) }
  }

  // MARK: The end

  /// Moves everything to the data files and closes their marks at the same position, so that the next start continues
  /// there and each file can be served alone. Nothing is applied or written later. The caller applies nothing
  /// meanwhile.
  /// - Throws: ``ReplicaError/storage(_:)`` if a file cannot be written. The others are closed.
  package func close() throws(ReplicaError) {
    var failure: StorageError?
    let (members, applied) = end()
    for member in members {
      do throws(StorageError) {
        try member.store.close(at: applied)
      } catch { failure = error }
    }
    if let failure { throw .storage(failure) }
  }

  /// Ends all work, and leaves the data files as a crash would.
  package func abandon() { for member in end().members { member.store.abandon() } }

  /// Forgets the stores, so that their files close when their snapshots and owners are released.
  private func end() -> (members: [Member], applied: LogPosition) {
    state.withLock { state in
      state.isClosed = true
      defer { state.members = [:] }
      return (Array(state.members.values), state.applied)
    }
  }
}
