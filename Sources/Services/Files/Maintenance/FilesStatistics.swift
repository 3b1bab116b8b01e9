import ContentSharing
package import KeyValue

/// The number and the size of the stored files.
package struct FilesStatistics: Equatable, Sendable {
  /// The number of created buckets.
  package private(set) var buckets = 0
  /// The number of objects, including old versions.
  package private(set) var objects = 0
  /// The size of the objects, in bytes.
  package private(set) var objectBytes = 0
  /// The number of distinct contents.
  package private(set) var contents = 0
  /// The size of the contents, in bytes. Less than ``objectBytes`` if objects share content.
  package private(set) var contentBytes = 0
  /// The number of active uploads and of those that ended recently.
  package private(set) var uploads = 0

  /// The JSON names of ``values``.
  package static let columns: [StaticString] = [
    "buckets", "objects", "objectBytes", "contents", "contentBytes", "uploads",
  ]

  /// The numbers, in the order of ``columns``.
  package var values: [Int] { [buckets, objects, objectBytes, contents, contentBytes, uploads] }

  /// Creates statistics from numbers in the order of ``columns``. Missing numbers are 0.
  package init(_ values: [Int]) {
    let values = values + [Int](repeating: 0, count: max(0, Self.columns.count - values.count))
    (buckets, objects, objectBytes) = (values[0], values[1], values[2])
    (contents, contentBytes, uploads) = (values[3], values[4], values[5])
  }

  /// Counts the files. Cost: reads all metadata, and the size of every content file.
  /// - Throws: ``FilesError`` if the metadata cannot be read.
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
      case .pendingCommit, .use, .shared, .sharedSweep, nil: break
      }
      isFound = try scan.next()
    }
  }
}
