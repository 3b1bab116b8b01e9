import Files
import Foundation
import Glibc
import LMDBStore
import Testing

/// A file store in a temporary directory, which can be closed and opened again.
final class TestFiles {
  let path: String
  private(set) var store: FileStore
  private let configuration: FileStore.Configuration

  init(makesBuckets: Bool = true) throws {
    path = NSTemporaryDirectory() + "hearth-files-test-" + UUID().uuidString
    var configuration = FileStore.Configuration {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
    configuration.makesBuckets = makesBuckets
    self.configuration = configuration
    store = try Self.open(path, configuration)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  static func open(_ path: String, _ configuration: FileStore.Configuration) throws -> FileStore {
    let contents = try ContentDirectory(path)
    let metadata = try LMDBStore.open(LMDBOptions(path: path + "/data.mdb", mapBytes: 64 << 20))
    let store = FileStore(metadata: metadata, contents: contents, configuration: configuration)
    try store.recover()
    return store
  }

  /// Closes the store and opens it as a new process would; files that are there in `between` are its own doing.
  func reopen(between: () throws -> Void = {}) throws {
    // Nothing else holds it: the environment closes before it is opened again.
    store = try FileStore(
      metadata: LMDBStore.open(.inMemory(mapBytes: 1 << 20)), contents: ContentDirectory(path + "/none"),
      configuration: configuration)
    try between()
    store = try Self.open(path, configuration)
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

  /// The text of an open file, which is closed.
  static func read(_ descriptor: Int32) -> String {
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// All files below the directory but the metadata's.
  var files: [String] {
    (FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []).filter {
      !$0.hasPrefix("data.mdb") && !$0.hasPrefix("none") && $0.split(separator: "/").count > 1
        && ($0.hasPrefix("incoming") || $0.split(separator: "/").count == 3)
    }.sorted()
  }
}
