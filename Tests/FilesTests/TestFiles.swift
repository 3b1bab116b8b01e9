import Files
import Foundation
import Glibc
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport

/// A file store in a temporary directory that a test can close and open again.
final class TestFiles {
  private let directory: TemporaryDirectory
  private(set) var store: FileStore
  /// The failures to inject into the disk and the metadata store.
  let faults = Faults()
  let clock = TestClock()
  private let configuration: FileStore.Configuration
  private let isInMemory: Bool
  private let bytesMax: Int

  init(
    makesBuckets: Bool = true, inMemory bytesMax: Int? = nil, change: (inout FileStore.Configuration) -> Void = { _ in }
  ) throws {
    directory = try TemporaryDirectory()
    var configuration = FileStore.Configuration { [clock] in clock.now }
    configuration.makesBuckets = makesBuckets
    change(&configuration)
    self.configuration = configuration
    isInMemory = bytesMax != nil
    self.bytesMax = bytesMax ?? .max
    store = try Self.open(directory.path, configuration, faults, isInMemory, self.bytesMax)
  }

  var path: String { directory.path }

  static func open(
    _ path: String, _ configuration: FileStore.Configuration, _ faults: Faults = Faults(), _ isInMemory: Bool = false,
    _ bytesMax: Int = .max
  ) throws -> FileStore {
    let contents = try ContentDirectory(
      path, isInMemory: isInMemory, bytesMax: bytesMax, fault: { faults.code(of: $0) })
    let metadata = try LMDBStore.open(LMDBOptions(path: path + "/data.mdb", mapBytes: 64 << 20))
    let store = FileStore(
      metadata: FaultyStore(metadata, faults), contents: contents, configuration: configuration)
    try store.recover()
    return store
  }

  /// Closes the store and opens it like a new process. `between` can change the files on the disk meanwhile.
  func reopen(between: () throws -> Void = {}) throws {
    // Replacing the store closes its environment before it is opened again.
    store = try FileStore(
      metadata: LMDBStore.open(.inMemory(mapBytes: 1 << 20)), contents: ContentDirectory(path + "/none"),
      configuration: configuration)
    try between()
    store = try Self.open(path, configuration, faults, isInMemory, bytesMax)
  }

  /// Returns the number of objects on each page of a listing.
  func pageCounts(_ listing: ObjectListing) throws -> [Int] {
    var listing = listing
    var counts: [Int] = []
    repeat {
      let page = try store.list(listing)
      counts.append(page.objects.count)
      listing.pageToken = page.nextPageToken
    } while listing.pageToken != nil
    return counts
  }

  static func name(_ name: String, bucket: String = "b") -> ObjectName { ObjectName(bucket: bucket, name: name) }

  func incoming(_ bytes: [UInt8]) throws -> IncomingContent {
    let incoming = try store.makeIncoming()
    try bytes.withUnsafeBytes { try incoming.append($0) }
    return incoming
  }

  @discardableResult
  func put(
    _ name: String, _ text: String, bucket: String = "b", _ conditions: ObjectConditions = ObjectConditions()
  ) throws -> StoredObject {
    try store.put(
      Self.name(name, bucket: bucket), incoming(Array(text.utf8)), ObjectAttributes(), conditions: conditions)
  }

  func text(_ name: String) throws -> String? {
    guard let (object, descriptor) = try store.open(Self.name(name)) else { return nil }
    let text = Self.read(descriptor)
    #expect(text.utf8.count == object.content.size)
    return text
  }

  /// Returns the text of an open file, and closes it.
  static func read(_ descriptor: Int32) -> String {
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// The paths of all files except the metadata.
  var files: [String] {
    (FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []).filter {
      !$0.hasPrefix("data.mdb") && !$0.hasPrefix("none") && $0.split(separator: "/").count > 1
        && ($0.hasPrefix("incoming") || $0.split(separator: "/").count == 3)
    }.sorted()
  }
}

/// A clock that a test can advance.
final class TestClock: Sendable {
  private let ahead = Atomic<Int64>(0)

  /// The current time, in microseconds since 1970.
  var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000 + ahead.load(ordering: .relaxed)
  }

  func advance(seconds: Int) { ahead.add(Int64(seconds) * 1_000_000, ordering: .relaxed) }
}

/// The failures to inject, and a counter of metadata writes.
final class Faults: Sendable {
  private struct State {
    var codes: [DiskCall: Int32] = [:]
    var writes = 0
    var storeError: StorageError?
    var storeErrors = 0
    var snapshotError: StorageError?
    var beforeWrite: (@Sendable (Int) -> Void)?
  }

  private let state = Mutex(State())

  func code(of call: DiskCall) -> Int32 { state.withLock { $0.codes[call] ?? 0 } }

  /// Makes an operation fail with an `errno`. 0 makes it succeed.
  func set(_ call: DiskCall, _ code: Int32) { state.withLock { $0.codes[call] = code } }

  /// Makes the next commits of the metadata store fail.
  func failWrites(_ error: StorageError, times: Int) {
    state.withLock { state in
      state.storeError = error
      state.storeErrors = times
    }
  }

  /// Makes snapshots of the metadata store fail, or work again.
  func failSnapshots(_ error: StorageError?) { state.withLock { $0.snapshotError = error } }

  func beginSnapshot() throws(StorageError) {
    if let error = state.withLock({ $0.snapshotError }) { throw error }
  }

  /// Calls `action` with the number of each write transaction before it begins.
  func beforeWrite(_ action: (@Sendable (Int) -> Void)?) { state.withLock { $0.beforeWrite = action } }

  /// The number of write transactions begun.
  var writes: Int { state.withLock { $0.writes } }

  func begin() {
    let (number, action) = state.withLock { state in
      state.writes += 1
      return (state.writes, state.beforeWrite)
    }
    action?(number)
  }

  func end() throws(StorageError) {
    let error = state.withLock { state -> StorageError? in
      guard state.storeErrors > 0 else { return nil }
      state.storeErrors -= 1
      return state.storeError
    }
    if let error { throw error }
  }
}

/// A key-value store whose commits and snapshots can fail.
final class FaultyStore: KeyValueStore {
  private let base: LMDBStore
  private let faults: Faults

  init(_ base: LMDBStore, _ faults: Faults) {
    self.base = base
    self.faults = faults
  }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    try faults.beginSnapshot()
    return try base.snapshot()
  }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    faults.begin()
    try base.write { (transaction) throws(StorageError) in
      try body(transaction)
      try faults.end()
    }
  }

  func copy(toFile path: String) throws(StorageError) { try base.copy(toFile: path) }
  func statistics() throws(StorageError) -> KeyValueStatistics { try base.statistics() }
}

extension FileStore {
  func incoming(_ text: String) throws -> IncomingContent {
    let incoming = try makeIncoming()
    try Array(text.utf8).withUnsafeBytes { try incoming.append($0) }
    return incoming
  }
}

/// The outcomes of concurrent calls: an error, or `nil` for success.
final class Outcomes: Sendable {
  private let state = Mutex<[String: FilesError?]>([:])

  var all: [String: FilesError?] { state.withLock { $0 } }

  func error(of name: String) -> FilesError? { all[name] ?? nil }

  func add(_ name: String, _ error: FilesError?) { state.withLock { _ = $0.updateValue(error, forKey: name) } }
}
