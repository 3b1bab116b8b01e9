import ContentSharing
import Files
import Glibc
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport

/// A node of a cluster: a file store on a copy of the metadata, with a directory of its own and the shared content.
final class SharedNode: Sendable {
  let store: FileStore
  let faults = Faults()
  let directory: TemporaryDirectory
  private let metadata: LMDBStore
  private let seconds: BootSeconds
  private let waits: Waits

  /// Opens a node on an empty store, or as the successor of another node on a copy of its metadata.
  init(
    _ shared: MemoryContent?, metadata copy: String? = nil, in directory: TemporaryDirectory? = nil, cache: Int = .max,
    wasCommitted: Bool = false
  ) throws {
    let directory = try directory ?? TemporaryDirectory()
    self.directory = directory
    let file = directory.file("data.mdb")
    if let copy { try #require(rename(copy, file) == 0) }
    let clock = TestClock()
    var configuration = FileStore.Configuration { clock.now }
    configuration.makesBuckets = true
    configuration.shared = shared
    configuration.cacheBytesMax = cache
    configuration.wasCommitted = { (_, _) throws(FilesError) in wasCommitted }
    metadata = try LMDBStore.open(LMDBOptions(path: file, mapBytes: 64 << 20))
    let seconds = BootSeconds()
    configuration.bootSeconds = { seconds.value.load(ordering: .relaxed) }
    self.seconds = seconds
    let waits = Waits()
    configuration.objectWaits = { waits.action.withLock { $0 }?() }
    self.waits = waits
    store = FileStore(
      metadata: FaultyStore(metadata, faults), contents: try ContentDirectory(directory.path),
      configuration: configuration)
    try store.recover()
  }

  /// Advances the time since the start of the machine.
  func advance(seconds count: Int) { seconds.value.add(Int64(count), ordering: .relaxed) }

  /// Runs `action` when an object begins to wait for the writer.
  func whenObjectWaits(_ action: (@Sendable () -> Void)?) { waits.action.withLock { $0 = action } }

  /// Copies the metadata as they are now, as a replica has them. Returns the path of the copy.
  func copyMetadata() throws -> String {
    let path = directory.file("copy-\(UInt64.random(in: 0 ... .max)).mdb")
    try metadata.copy(toFile: path)
    return path
  }

  @discardableResult
  func put(_ name: String, _ text: String) throws -> StoredObject {
    try store.put(TestFiles.name(name), store.incoming(text), ObjectAttributes())
  }

  func text(_ name: String) throws -> String? {
    guard let (object, descriptor) = try store.open(TestFiles.name(name)) else { return nil }
    let text = TestFiles.read(descriptor)
    #expect(text.utf8.count == object.content.size)
    return text
  }

  /// The paths of the files of cached content.
  var cached: [String] { (0...255).flatMap { store.contents.digests(part: $0).map { store.contents.file(of: $0) } } }
}

private final class Waits: Sendable {
  let action = Mutex<(@Sendable () -> Void)?>(nil)
}

private final class BootSeconds: Sendable {
  let value = Atomic<Int64>(1_000_000)
}
