import Basics
import DocumentModel
import DocumentStore
import KeyValue
import WireFormat

/// An exact search for the nearest vectors: it measures every document that matches the rest of the query.
///
/// The whole pass precedes the first result. Memory: the names of the results. Each result is read again when it is
/// returned, so the search holds no document bytes in the meantime.
final class NearestExecution: QueryResults {
  private let search: FindNearest
  private let candidates: QueryExecution
  private let query: ResolvedQuery
  private let version: Int64
  private let meter: VectorDistanceMeter
  /// The field for the distance; `nil` if results are returned as stored.
  private let resultField: String?
  private var heap: NearestHeap
  /// The nearest documents, farthest first, once the pass is complete.
  private var nearest: [NearestHeap.Entry]?
  private var rereadDocuments = 0
  /// Counts the memory of the heap.
  private let scratch: Scratch
  /// The fields of the latest result if a distance was added, at a stable address.
  private var fields = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  init(
    _ query: ResolvedQuery, _ search: FindNearest, _ snapshot: any KeyValueSnapshot, at version: Int64,
    _ options: PlanOptions
  ) throws {
    self.search = search
    self.query = query
    self.version = version
    meter = VectorDistanceMeter(search)
    resultField = options.addsDistances ? search.resultField?.segments[0] : nil
    heap = NearestHeap(countMax: search.limit)
    // The distance replaces the order, but a document that lacks a field of the order is still not a candidate.
    var options = options
    options.isOrderNeeded = false
    options.needsDocuments = true
    candidates = try QueryExecution(query, snapshot, at: version, options)
    scratch = Scratch(options.scratch)
    scratch.pause()
  }

  deinit {
    fields.deallocate()
    scratch.end()
  }

  var skipped: Int { 0 }
  var isAtEnd: Bool { nearest?.isEmpty ?? false }

  var work: QueryCost {
    var work = candidates.work
    work.documents += rereadDocuments
    return work
  }

  var planText: String {
    let bound = search.threshold.map { " within \($0)" } ?? ""
    let measured = "\(search.field.text) by \(search.measure), \(search.vector.count) dimensions\(bound)"
    return candidates.planText.indented(below: "nearest \(search.limit) in \(measured)")
  }

  var indexesUsed: [ExplainMetrics.IndexUse] { candidates.plan.indexesUsed(reading: [], search: (search, query)) }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { scratch.wait(wake) || candidates.wait(wake) }

  func slice(
    _ snapshot: any KeyValueSnapshot, units: Int, _ found: (DocumentKey, StoredDocument) throws -> Bool
  ) throws {
    guard !isAtEnd else { return }
    try scratch.begin()
    defer { if isAtEnd { scratch.end() } else { scratch.pause() } }
    guard try scratch.cover(heap.bytes) else { return }
    if nearest == nil {
      try candidates.slice(snapshot, units: units) { key, document in
        let fields = EncodedMap(documentFields: document.fields)
        guard let distance = try meter.distance(of: fields, farthest: heap.farthestDistance) else { return true }
        heap.add(meter.rank(distance), key.path, distance: distance)
        return true
      }
      guard try scratch.cover(heap.bytes), candidates.isAtEnd else { return }
      nearest = heap.sorted().reversed()
    }
    var reader = SnapshotReader(snapshot)
    while let entry = nearest?.popLast() {
      guard let key = DocumentKey(entry.path), let row = try reader.collection(key.collection),
        let document = try reader.document(key.id, in: row.number, at: version)
      else { continue }
      rereadDocuments += 1
      guard try found(key, try withDistance(document, entry.distance)) else { return }
    }
  }

  /// Returns the document, with its distance as a field if the search asks for that.
  private func withDistance(_ document: StoredDocument, _ distance: Double) throws(WireError) -> StoredDocument {
    guard let resultField else { return document }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(document.fields.count + 32)
    try EncodedMap(documentFields: document.fields).append(setting: resultField, to: distance, out: &bytes)
    fields.deallocate()
    fields = .allocate(byteCount: bytes.count, alignment: 1)
    fields.copyBytes(from: bytes)
    return document.with(fields: UnsafeRawBufferPointer(fields))
  }
}
