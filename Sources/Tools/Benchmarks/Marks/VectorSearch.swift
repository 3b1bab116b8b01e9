import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import HearthServer
import WireFormat

extension Benchmark {
  static let vectorSearch = Benchmark(
    name: "vectors",
    summary: "the 10 nearest of 100,000 vectors of 128 dimensions, in this process",
    meaning: """
      One search after another on one thread, over documents in memory. Each search reads every document, verifies its
      checksum and measures its vector in place. The bytes are those of the vectors as numbers, 8 per component. The
      filter matches one document in a hundred.
      """
  ) {
    let (count, dimensions) = (100_000, 128)
    var table = ResultTable("search", "ms each", "vectors per second", "GB/s of components")
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.port = 0
    let server = try Server(configuration)
    defer { server.stop() }
    let service = server.service
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }

    Run.progress("vectors: \(count) documents")
    var random = SystemRandomNumberGenerator()
    func vector() -> [Double] { (0..<dimensions).map { _ in Double.random(in: -1...1, using: &random) } }
    for start in stride(from: 0, to: count, by: 500) {
      let writes = (start..<start + 500).compactMap { number in
        DocumentKey(ResourcePath(uncheckedBytes: Array("vectors/v\(number)".utf8))).map { key in
          let fields = MapValue([("group", .integer(Int64(number % 100))), ("v", .vector(vector()))])
          return Write(.update(EncodedFields(fields), mask: nil), key: key)
        }
      }
      try commit(writes, service, id)
    }

    for measure in FindNearest.Measure.allCases {
      var query = Query(collectionID: "vectors")
      query.findNearest = FindNearest(FieldPath(field: "v"), near: vector(), by: measure, limit: 10)
      try time("\(measure)", of: count, query, 20)
    }
    var query = Query(collectionID: "vectors")
    query.filter = .field(FieldPath(field: "group"), .equal, .integer(7))
    query.findNearest = FindNearest(FieldPath(field: "v"), near: vector(), by: .cosine, limit: 10)
    try time("cosine, with a filter", of: count / 100, query, 500)
    return table

    func time(_ name: String, of measured: Int, _ query: Query, _ times: Int) throws {
      Run.progress("vectors: \(name)")
      let watch = Stopwatch()
      for _ in 0..<times {
        let cursor = try service.runQuery(RunQueryRequest(query), in: id, as: .admin)
        var found = 0
        while !cursor.isAtEnd {
          try cursor.slice { _, _ in
            found += 1
            return true
          }
        }
        guard found == 10 else { throw BenchmarkError("\(found) documents instead of 10") }
      }
      let seconds = watch.seconds / Double(times)
      let bytes = Double(measured * dimensions * 8)
      table.add(
        name, Format.tenths(seconds * 1000), Format.count(Double(measured) / seconds),
        Format.tenths(bytes / seconds / 1e9))
    }
  }

  /// Commits the writes together and waits for the result.
  private static func commit(_ writes: [Write], _ service: FirestoreService, _ id: DatabaseID) throws {
    let isDone = DispatchSemaphore(value: 0)
    let failure = Lock(false)
    try service.commit(writes, in: id, as: .admin) { result in
      if case .failure = result { failure.withLock { $0 = true } }
      isDone.signal()
    }
    isDone.wait()
    if failure.withLock({ $0 }) { throw BenchmarkError("a commit failed") }
  }
}
