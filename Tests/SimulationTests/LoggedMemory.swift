import KeyValue
import LMDBEngine
import LogEngine
import Synchronization

/// Stores with a commit log, all of it in memory. Their tables are so small that a simulation flushes them often.
enum LoggedMemory {
  static func open() throws(StorageError) -> LoggedStore {
    try LoggedStore.open(
      LMDBStore.open(.inMemory(mapBytes: 1 << 30)), folder: MemoryFolder(), settings: settings)
  }

  /// Tables of about a dozen commits, which are flushed beside the reads.
  static var settings: LoggedStoreSettings {
    var settings = LoggedStoreSettings()
    settings.memtableBytesMax = 30_000
    settings.flushOperationsMax = 20
    settings.singleRemovalsMax = 3
    settings.log = FileLog.Sizes(segmentBytesMin: 4096, segmentBytesMax: 64 << 10)
    return settings
  }
}

/// The folder of a log in memory.
final class MemoryFolder: LogFolder {
  let path = "log"
  private let files = Mutex<[String: MemoryFile]>([:])

  func names() -> [String] { files.withLock { Array($0.keys) } }

  func create(_ name: String, bytes: Int) -> any LogFile {
    let file = MemoryFile(bytes: bytes)
    files.withLock { $0[name] = file }
    return file
  }

  func open(_ name: String) throws(StorageError) -> any LogFile {
    guard let file = files.withLock({ $0[name] }) else { throw .system(operation: "open", path: name, code: 2) }
    return file
  }

  func rename(_ name: String, to other: String) throws(StorageError) {
    let isThere = files.withLock { files in
      guard let file = files.removeValue(forKey: name) else { return false }
      files[other] = file
      return true
    }
    guard isThere else { throw .system(operation: "rename", path: name, code: 2) }
  }

  func remove(_ name: String) throws(StorageError) {
    guard files.withLock({ $0.removeValue(forKey: name) }) != nil else {
      throw .system(operation: "unlink", path: name, code: 2)
    }
  }

  func syncNames() {}
}

private final class MemoryFile: LogFile {
  let bytes: Int
  private let content: Mutex<[UInt8]>

  init(bytes: Int) {
    self.bytes = bytes
    content = Mutex([UInt8](repeating: 0, count: bytes))
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    content.withLock { content in
      let part = content[min(offset, bytes)..<min(offset + buffer.count, bytes)]
      buffer.copyBytes(from: part)
      return part.count
    }
  }

  func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int) {
    let added = [UInt8](first) + [UInt8](second)
    content.withLock { $0.replaceSubrange(offset..<offset + added.count, with: added) }
  }

  func sync() {}
}
