import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Foundation
import KeyValue
import LMDBEngine
import WireFormat

extension Benchmark {
  static let declaredIndexes = Benchmark(
    name: "indexes",
    summary: "declared indexes: queries on small and large collections, and the cost of each index for a write",
    meaning: """
      In this process, on one thread, in memory. The query has an equality filter, an order by another field and a limit
      of 20, with a composite index on the two fields. Each run requests another value. Each written document has ten
      fields, all of them changed. Each index covers two of them, and 64 commits run concurrently. The bytes are those
      that LMDB passes to the kernel for one commit alone, on disk: whole pages of 4 KiB.
      """
  ) {
    var table = ResultTable("work", "µs each", "against the first", "bytes written")
    var first: Double?
    func add(_ name: String, _ seconds: Double, of count: Int, bytes: String = "") {
      let each = seconds / Double(count) * 1_000_000
      table.add(name, Format.tenths(each), Format.ratio(each, to: first), bytes)
      first = first ?? each
    }

    for count in [10_000, 1_000_000] {
      Run.progress("indexes: \(Format.count(Double(count))) documents")
      let (service, id) = try load(documents: count)
      let asked = 5_000
      let watch = Stopwatch()
      for round in 0..<asked {
        var query = Query(collectionID: "tasks")
        query.filter = .field(FieldPath(field: "owner"), .equal, .integer(Int64(round % owners)))
        query.orders = [Order(FieldPath(field: "rank"), isDescending: true)]
        query.limit = 20
        let cursor = try service.runQuery(RunQueryRequest(query), in: id, as: .admin)
        var found = 0
        while !cursor.isAtEnd {
          try cursor.slice { _, document in
            found += document.fields.isEmpty ? 0 : 1
            return true
          }
        }
        guard found == 20 else { throw BenchmarkError("\(found) results") }
      }
      add("query of 20 in \(Format.count(Double(count))) documents", watch.seconds, of: asked)
    }

    first = nil
    // The first round warms up.
    for (round, count) in [0, 0, 1, 2, 5, 10].enumerated() {
      Run.progress("indexes: commits with \(count) indexes")
      let fields = (0..<10).map { FieldPath(field: "f\($0)") }
      let indexes = (0..<count).map { number in
        IndexDefinition(
          collectionID: "tasks", scope: .collection,
          fields: [.init(fields[number], .ascending), .init(fields[(number + 1) % 10], .descending)])
      }
      let configuration = IndexConfiguration(indexes: indexes)
      let (service, _, id) = try serve(configuration)
      var random = SampleGenerator(state: 7)
      let seconds = try commits(20_000, service, id, &random, underWay: 64)
      let directory = try Run.makeDirectory("indexes-\(round)")
      let (durable, _, durableID) = try serve(configuration, file: "\(directory)/data.mdb")
      _ = try commits(5_000, durable, durableID, &random, underWay: 64)
      let before = bytesHandedToKernel()
      _ = try commits(300, durable, durableID, &random, underWay: 1)
      let bytes = (bytesHandedToKernel() - before) / 300
      if round == 0 { continue }
      add(
        "commit of a document of 10 fields, \(count) indexes", seconds, of: 20_000, bytes: Format.count(Double(bytes)))
    }
    return table
  }

  private static let owners = 50

  private static func serve(_ indexes: IndexConfiguration, file: String? = nil) throws -> (
    FirestoreService, DatabaseRegistry, DatabaseID
  ) {
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    let registry = DatabaseRegistry(idleSeconds: nil, indexes: { _ in indexes }) { (_) throws(StorageError) in
      guard let file else { return try LMDBStore.open(.inMemory(mapBytes: 8 << 30)) }
      return try LMDBStore.open(LMDBOptions(path: file))
    }
    return (FirestoreService(databases: registry, mode: .emulator), registry, id)
  }

  private static func load(documents: Int) throws -> (FirestoreService, DatabaseID) {
    let index = IndexDefinition(
      collectionID: "tasks", scope: .collection,
      fields: [.init(FieldPath(field: "owner"), .ascending), .init(FieldPath(field: "rank"), .descending)])
    let (service, registry, id) = try serve(IndexConfiguration(indexes: [index]))
    let loader = try registry.opened(id).makeLoader()
    var random = SampleGenerator(state: 3)
    for start in stride(from: 0, to: documents, by: 10_000) {
      var items: [BulkLoader.Item] = []
      for number in start..<start + 10_000 {
        var map = MapValue()
        map["owner"] = .integer(Int64(number % owners))
        map["rank"] = .integer(Int64(bitPattern: random.next() >> 2))
        map["title"] = .string("task number \(number)")
        guard let key = DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\(number)".utf8))) else { continue }
        items.append(try BulkLoader.Item(key: key, fields: EncodedFields(map), indexes: loader.indexes))
      }
      try loader.load(items)
    }
    return (service, id)
  }

  /// Returns the seconds to commit documents of ten fields with the given number of commits under way.
  private static func commits(
    _ count: Int, _ service: FirestoreService, _ id: DatabaseID, _ random: inout SampleGenerator, underWay: Int
  ) throws -> Double {
    var writes: [Write] = []
    for number in 0..<count {
      var map = MapValue()
      for field in 0..<10 { map["f\(field)"] = .integer(Int64(bitPattern: random.next() >> 2)) }
      guard let key = DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\(number % 5000)".utf8))) else { continue }
      writes.append(Write(.update(EncodedFields(map), mask: nil), key: key))
    }
    let room = DispatchSemaphore(value: underWay)
    let watch = Stopwatch()
    for write in writes {
      room.wait()
      try service.commit([write], transaction: nil, in: id, as: .admin) { _ in room.signal() }
    }
    for _ in 0..<underWay { room.wait() }
    let seconds = watch.seconds
    for _ in 0..<underWay { room.signal() }
    return seconds
  }
}
