package import KeyValue

/// How many files there are, and what they take.
package struct FilesStatistics: Equatable, Sendable {
  /// Buckets that were made.
  package private(set) var buckets = 0
  /// Objects, and versions of them that buckets keep.
  package private(set) var objects = 0
  /// What the objects hold, in bytes.
  package private(set) var objectBytes = 0
  /// Different contents.
  package private(set) var contents = 0
  /// What the contents take, in bytes: less than ``objectBytes`` where objects hold the same.
  package private(set) var contentBytes = 0
  /// Uploads that have begun and may go on, and those that ended lately.
  package private(set) var uploads = 0

  /// The numbers of ``values``: how JSON names them.
  package static let columns: [StaticString] = [
    "buckets", "objects", "objectBytes", "contents", "contentBytes", "uploads",
  ]

  /// The numbers, in the order of ``columns``.
  package var values: [Int] { [buckets, objects, objectBytes, contents, contentBytes, uploads] }

  /// Takes numbers in the order of ``columns``; those that are missing are 0.
  package init(_ values: [Int]) {
    let values = values + [Int](repeating: 0, count: max(0, Self.columns.count - values.count))
    (buckets, objects, objectBytes) = (values[0], values[1], values[2])
    (contents, contentBytes, uploads) = (values[3], values[4], values[5])
  }

  /// Counts. Cost: reads all metadata, and looks at the size of every content.
  package init(_ metadata: any KeyValueStore, _ directory: ContentDirectory) throws(FilesError) {
    let snapshot: any KeyValueSnapshot
    do throws(StorageError) { snapshot = try metadata.snapshot() } catch { throw .storage(error) }
    defer { snapshot.end() }
    let scan = try MetadataCursor(snapshot)
    var isFound = try scan.seek([0])
    while isFound {
      switch scan.key.first.flatMap({ FilesKeySpace.Table(rawValue: $0) }) {
      case .buckets: buckets += 1
      case .objects:
        objects += 1
        if let name = FilesKeySpace.objectName(scan.key), let object = ObjectRecord.decode(scan.value, name) {
          objectBytes += object.content.size
        }
      case .contents:
        contents += 1
        contentBytes += directory.size(of: ContentDigest(bytes: Array(scan.key.dropFirst()))) ?? 0
      case .versions:
        objects += 1
        if let name = FilesKeySpace.versionName(scan.key), let object = ObjectRecord.decode(scan.value, name) {
          objectBytes += object.content.size
        }
      case .uploads: uploads += 1
      case .pendingCommit, nil: break
      }
      isFound = try scan.next()
    }
  }
}
