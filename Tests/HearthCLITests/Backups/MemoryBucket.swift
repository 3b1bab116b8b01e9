import DocumentModel

@testable import HearthCLI

/// A bucket in memory. Tests read and change its objects, and let requests fail.
final class MemoryBucket: BucketStore {
  var objects: [String: (content: [UInt8], stored: Timestamp)] = [:]
  var now = Timestamp(uncheckedMicroseconds: 1_800_000_000_000_000)
  /// Called before an object is stored.
  var beforePut: (_ name: String) throws -> Void = { _ in }
  private(set) var puts: [String] = []

  var text: String { "memory://" }

  func put(_ name: String, _ content: [UInt8]) throws {
    try beforePut(name)
    puts.append(name)
    objects[name] = (content, now)
  }

  func putNew(_ name: String, _ content: [UInt8]) throws -> Bool {
    guard objects[name] == nil else { return false }
    try put(name, content)
    return true
  }

  func get(_ name: String) throws -> [UInt8]? { objects[name]?.content }

  func list(_ prefix: String, _ take: ([BucketObject]) throws -> Void) throws {
    let names = objects.keys.filter { $0.hasPrefix(prefix) }.sorted()
    // Pages are small, so that the tests see several.
    for start in stride(from: 0, to: names.count, by: 3) {
      try take(
        names[start..<min(start + 3, names.count)].map {
          BucketObject(name: $0, size: objects[$0]?.content.count ?? 0, stored: objects[$0]?.stored)
        })
    }
  }

  func remove(_ name: String) throws { objects[name] = nil }
}
