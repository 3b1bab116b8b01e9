package import DocumentModel
import DocumentStore
package import KeyValueStore

/// Finds names that cut the documents of a collection group into parts of about one size.
///
/// One pass over the group's keys: every so-many-th name is kept, and whenever too many are, every second one is let go
/// and the step doubles. Memory is that of the names kept and of the group's collections; the result depends on nothing
/// but the documents.
package struct PartitionSampler {
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  /// The collections still to be read, the next one last.
  private var collections: [ResourcePath]
  private var scan: (collection: ResourcePath, scan: CollectionScan)?
  private var samples: [ResourcePath] = []
  private let samplesMax: Int
  /// A name is kept for every so many documents.
  private var step = 1
  private var stepsLeft = 0
  private let cutsMax: Int

  /// Starts a pass that is to find at most `cutsMax` names; `version` is `nil` to read what the snapshot shows.
  package init(
    group id: String, cutsMax: Int, _ snapshot: any KeyValueSnapshot, at version: Int64?
  ) throws(StorageError) {
    self.snapshot = snapshot
    self.version = version
    self.cutsMax = cutsMax
    samplesMax = max(Self.samplesMin, Self.samplesPerCut * (cutsMax + 1))
    var reader = DocumentReader(snapshot)
    collections = try (reader.collections(ofGroup: Array(id.utf8)) ?? []).sorted(by: >)
  }

  /// Kept names for each cut, so that parts differ by few percent.
  private static let samplesPerCut = 16
  private static let samplesMin = 1024

  /// Passes over up to `count` documents; returns whether there may be more.
  package mutating func advance(_ count: Int) throws(StorageError) -> Bool {
    var left = count
    while left > 0 {
      guard scan != nil else {
        guard try openNext() else { return false }
        left -= 1
        continue
      }
      guard try scan?.scan.advance() == true else {
        scan = nil
        continue
      }
      left -= 1
      if stepsLeft == 0 { keep() }
      stepsLeft -= 1
    }
    return true
  }

  /// The names in order, once the pass is done: each starts a part, the first part starts before all of them.
  package consuming func cuts() -> [DocumentKey] {
    var names = samples.sorted()
    // A cut at the first document would leave an empty part before it.
    if !names.isEmpty { names.removeFirst() }
    let count = min(cutsMax, names.count)
    return (0..<count).compactMap { DocumentKey(names[$0 * names.count / count]) }
  }

  private mutating func openNext() throws(StorageError) -> Bool {
    guard let collection = collections.popLast() else { return false }
    var reader = DocumentReader(snapshot)
    guard let row = try reader.collection(collection) else { return true }
    scan = (collection, try CollectionScan(snapshot, collection: row.number, at: version))
    return true
  }

  private mutating func keep() {
    guard let scan else { return }
    var path = scan.collection.bytes
    path.append(UInt8(ascii: "/"))
    scan.scan.appendID(to: &path)
    samples.append(ResourcePath(uncheckedBytes: path))
    if samples.count >= samplesMax {
      samples = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
      step *= 2
    }
    stepsLeft = step
  }
}
