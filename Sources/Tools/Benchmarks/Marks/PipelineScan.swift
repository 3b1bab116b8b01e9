import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import KeyValue
import WireFormat

extension Benchmark {
  static let pipelineScan = Benchmark(
    name: "pipeline-scan",
    summary: "a pipeline that scans 1,000,000 documents, in this process, compared with a bare cursor",
    meaning: """
      Documents a second, and by processor time, from the fastest of five rounds, which alternate. The documents have five
      fields. The first pipeline evaluates a condition that no index has on each document, and counts those that pass.
      The second one groups all documents by an expression of 50 values and computes count, sum and average. The threads
      of a pipeline divide a large scan, one for each processor. The bare cursor visits the same rows on one thread; "with
      checksums" also verifies each row, as every read of a document does. The mark compares with the bare cursor without
      checksums, which does less than any read of documents.
      """
  ) {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.port = 0
    let server = try Server(configuration)
    defer { server.stop() }
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    let count = 1_000_000
    Run.progress("pipeline-scan: loading \(Format.count(Double(count))) documents")
    let loader = try server.registry.opened(id).makeLoader()
    var samples = SampleDocuments()
    for start in stride(from: 0, to: count, by: 20_000) {
      try loader.load(
        try (start..<start + 20_000).map { number in
          try BulkLoader.Item(
            key: DocumentKey(uncheckedPath: ResourcePath(uncheckedBytes: Array("tasks/t\(number)".utf8))),
            fields: samples.next())
        })
    }
    let condition = PipelineArgument.function(
      PipelineCall(
        "equal",
        [.function(PipelineCall("mod", [.field("count"), .constant(.integer(97))])), .constant(.integer(5))]))
    let collection = PipelineCall("collection", [.constant(.reference("/tasks"))])
    func aggregate(_ functions: [(String, PipelineArgument)], _ groups: [(String, PipelineArgument)]) -> PipelineCall {
      PipelineCall(
        "aggregate",
        [.entries(functions.map { .init($0.0, $0.1) }), .entries(groups.map { .init($0.0, $0.1) })])
    }
    func call(_ name: String, _ arguments: PipelineArgument...) -> PipelineArgument {
      .function(PipelineCall(name, arguments))
    }
    let works: [(name: String, stages: [PipelineCall])] = [
      (
        "pipeline with a condition",
        [collection, PipelineCall("where", [condition]), aggregate([("n", call("count"))], [])]
      ),
      (
        "pipeline that groups",
        [
          collection,
          aggregate(
            [
              ("n", call("count")), ("sum", call("sum", .field("count"))), ("mean", call("average", .field("count"))),
            ], [("g", call("mod", .field("count"), .constant(.integer(50))))]),
        ]
      ),
    ]
    var fastest = works.map { _ in (rate: 0.0, rateOfCPU: 0.0) }
    var (bare, verified) = (0.0, 0.0)
    for _ in 0..<5 {
      for (index, work) in works.enumerated() {
        let (watch, cpu) = (Stopwatch(), clock())
        let cursor = try server.service.executePipeline(
          ExecutePipelineRequest(StructuredPipeline(work.stages)), in: id, as: .admin)
        while !cursor.isAtEnd { try cursor.slice { _ in true } }
        let seconds = watch.seconds
        let cpuSeconds = Double(clock() - cpu) / Double(CLOCKS_PER_SEC)
        fastest[index].rate = max(fastest[index].rate, Double(count) / seconds)
        fastest[index].rateOfCPU = max(fastest[index].rateOfCPU, Double(count) / cpuSeconds)
      }
      bare = max(bare, try rowsPerSecond(server, id, count, verifies: false))
      verified = max(verified, try rowsPerSecond(server, id, count, verifies: true))
    }
    var table = ResultTable(
      "work", "documents/s", "against a bare cursor", "with checksums", "documents/s of CPU", "mark")
    for (index, work) in works.enumerated() {
      let rate = fastest[index].rate
      table.add(
        work.name, Format.count(rate), Format.ratio(rate, to: bare), Format.ratio(rate, to: verified),
        Format.count(fastest[index].rateOfCPU), index == 0 ? "≥ 0.50 ×" : "")
    }
    table.add("bare cursor", Format.count(bare), "", "", "", "")
    table.add("bare cursor with checksums", Format.count(verified), "", "", "", "")
    return table
  }

  /// Returns the documents that a bare cursor visits per second.
  private static func rowsPerSecond(_ server: Server, _ id: DatabaseID, _ count: Int, verifies: Bool) throws -> Double {
    try server.registry.opened(id).read { reader in
      let cursor = try reader.snapshot.makeCursor()
      var key = StorageKey()
      key.begin(.documents)
      let watch = Stopwatch()
      var bytes = 0
      var found = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) } ? 1 : 0
      while found < count {
        if verifies {
          bytes += try SnapshotReader.decode(row: cursor.value, key: cursor.key).fields.count
        } else {
          bytes += cursor.value.count
        }
        guard try cursor.next() else { break }
        found += 1
      }
      guard bytes > count else { throw BenchmarkError("the documents are empty") }
      return Double(found) / watch.seconds
    }
  }
}
