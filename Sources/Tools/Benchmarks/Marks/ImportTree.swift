import DatabaseService
import DocumentModel
import DocumentStore
import Foundation
import KeyValue
import LMDBEngine

extension Benchmark {
  static let importTree = Benchmark(
    name: "import",
    summary: "200,000 documents of five scalar fields, indexed, into an empty database in memory",
    meaning: """
      The raw loop writes five entries per document in transactions of 2,000 documents. Its keys are as long as index
      entries and in random order. It shows the limit of LMDB without Hearth. Hearth writes six entries per document:
      the document and one for each field. The last row is the work of `hearth import` with a new database: one thread
      reads the file and computes index entries while another writes them.
      """
  ) {
    let count = 200_000
    var table = ResultTable("step", "documents/s", "against the raw loop", "mark")
    Run.progress("import: raw LMDB loop")
    let floor = Double(count) / (try rawLoop(documents: count))
    table.add("raw LMDB loop, 5 entries a document", Format.count(floor), "", "")

    Run.progress("import: computing index entries")
    var samples = SampleDocuments()
    let keys = (0..<count).compactMap { DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\($0)".utf8))) }
    let fields = keys.map { _ in samples.next() }
    var watch = Stopwatch()
    let items = try zip(keys, fields).map { try BulkLoader.Item(key: $0, fields: $1) }
    let preparing = Double(count) / watch.seconds
    table.add("compute index entries (one thread)", Format.count(preparing), "", "")

    Run.progress("import: bulk load")
    let database = try memoryDatabase()
    let loader = try database.makeLoader()
    watch = Stopwatch()
    for start in stride(from: 0, to: count, by: perTransaction) {
      try loader.load(Array(items[start..<min(start + perTransaction, count)]))
    }
    let loading = Double(count) / watch.seconds
    table.add("write them (one thread)", Format.count(loading), Format.ratio(loading, to: floor), "")

    Run.progress("import: a fixture tree from a file")
    let directory = try Run.makeDirectory("import")
    let (file, bytes) = try writeTree(to: "\(directory)/tree.json", documents: count)
    let target = try memoryDatabase()
    watch = Stopwatch()
    let outcome = try target.load(ImportFiles([file], database: target.id))
    let importing = Double(count) / watch.seconds
    guard outcome.documents == count else { throw BenchmarkError("\(outcome.documents) documents were imported") }
    table.add(
      "import a fixture tree of \(bytes >> 20) MiB", Format.count(importing), Format.ratio(importing, to: floor),
      "≥ 100,000")
    return table
  }

  private static let perTransaction = 2_000

  private static func memoryDatabase() throws -> DocumentDatabase {
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    let database = try DocumentDatabase(id: id, store: try LMDBStore.open(.inMemory()))
    try database.adopt()
    return database
  }

  /// Writes a tree with one collection. Returns its path and its size in bytes.
  static func writeTree(to path: String, documents: Int) throws -> (path: String, bytes: Int) {
    var samples = SampleDocuments()
    var text = #"{"$collections": ["tasks"], "tasks": {"# + "\n"
    for number in 0..<documents {
      text += #""t\#(number)": \#(samples.nextJSON())\#(number + 1 < documents ? "," : "")"# + "\n"
    }
    text += "}}\n"
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    return (path, text.utf8.count)
  }

  /// Returns the seconds to write five entries per document through the storage engine's interface.
  private static func rawLoop(documents: Int) throws -> Double {
    let store = try LMDBStore.open(.inMemory())
    var random = SampleGenerator(state: 1)
    var key = [UInt8](repeating: 0x20, count: 24)
    let watch = Stopwatch()
    for start in stride(from: 0, to: documents, by: perTransaction) {
      try store.write { (transaction) throws(StorageError) in
        for document in start..<min(start + perTransaction, documents) {
          for field in 0..<5 {
            var failure: StorageError?
            key.withUnsafeMutableBytes { key in
              key[2] = UInt8(field)
              key.storeBytes(of: random.next().bigEndian, toByteOffset: 4, as: UInt64.self)
              key.storeBytes(of: UInt64(document).bigEndian, toByteOffset: 16, as: UInt64.self)
              do throws(StorageError) {
                try transaction.put(UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(start: nil, count: 0))
              } catch { failure = error }
            }
            if let failure { throw failure }
          }
        }
      }
    }
    return watch.seconds
  }
}
