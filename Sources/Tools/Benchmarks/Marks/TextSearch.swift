import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import WireFormat

extension Benchmark {
  static let textSearch = Benchmark(
    name: "search",
    summary: "the stage search over 1,000,000 short documents, with a text index, in this process",
    meaning: """
      One search after another on one thread, over documents in memory. Each document has one string of eight words of a
      vocabulary of 20,000; the word of rank n is n times as rare as the most frequent one. A search returns the ten best
      matches. The row without an index reads every document. A load writes 10,000 documents at a time.
      """
  ) {
    let count = 1_000_000
    var table = ResultTable("work", "matches", "µs each")
    let vocabulary = Vocabulary(20_000)
    let index = IndexDefinition(
      collectionID: "posts", scope: .collection, fields: [.init(FieldPath(field: "title"), .text(.english))])
    let plain = FieldIndexing(collectionID: "posts", path: FieldPath(field: "title"), entries: [])

    for isIndexed in [false, true] {
      let (service, registry, id) = try serve(IndexConfiguration(indexes: isIndexed ? [index] : [], fields: [plain]))
      Run.progress("search: \(Format.count(Double(count))) documents, \(isIndexed ? "with" : "without") an index")
      let loader = try registry.opened(id).makeLoader()
      var random = SampleGenerator(state: 3)
      let loading = Stopwatch()
      for start in stride(from: 0, to: count, by: 10_000) {
        var items: [BulkLoader.Item] = []
        for number in start..<start + 10_000 {
          guard let key = DocumentKey(ResourcePath(uncheckedBytes: Array("posts/p\(number)".utf8))) else { continue }
          let fields = EncodedFields(MapValue([("title", .string(vocabulary.sentence(8, &random)))]))
          items.append(try BulkLoader.Item(key: key, fields: fields, indexes: loader.indexes))
        }
        try loader.load(items)
      }
      let suffix = isIndexed ? "with an index" : "without an index"
      table.add("load of a document, \(suffix)", "", Format.tenths(loading.seconds / Double(count) * 1e6))
      let searches: [(name: String, words: [Int], times: Int)] =
        isIndexed
        ? [
          ("a rare word", [15_000], 2_000), ("a common word", [500], 200),
          ("a word in an eighth of the documents", [5], 3),
          ("a rare and a common word", [2_000, 20], 200),
          ("three common words", [5, 12, 30], 20), ("a phrase of two common words", [5, 12], 5),
        ] : [("a rare word, without an index", [15_000], 1)]
      for search in searches {
        Run.progress("search: \(search.name)")
        var text = search.words.map { vocabulary.words[$0] }.joined(separator: " ")
        if search.name.contains("phrase") { text = "\"\(text)\"" }
        let all = try found(text, limit: nil, service, id)
        let watch = Stopwatch()
        for _ in 0..<search.times { _ = try found(text, limit: 10, service, id) }
        table.add(
          search.name, Format.count(Double(all)), Format.tenths(watch.seconds / Double(search.times) * 1e6))
      }
    }
    return table
  }

  private static func serve(
    _ indexes: IndexConfiguration
  ) throws -> (FirestoreService, DatabaseRegistry, DatabaseID) {
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    let registry = DatabaseRegistry(idleSeconds: nil, indexes: { _ in indexes }) { (_) throws(StorageError) in
      try LMDBStore.open(.inMemory(mapBytes: 8 << 30))
    }
    return (FirestoreService(databases: registry, mode: .emulator), registry, id)
  }

  /// Runs a search and returns the number of results.
  private static func found(_ text: String, limit: Int?, _ service: FirestoreService, _ id: DatabaseID) throws -> Int {
    let query = PipelineArgument.function(PipelineCall("document_matches", [.constant(.string(text))]))
    var options = [PipelineArgument.Entry("query", query)]
    if let limit {
      let score = PipelineArgument.entries([
        PipelineArgument.Entry("expression", .function(PipelineCall("score", []))),
        PipelineArgument.Entry("direction", .constant(.string("descending"))),
      ])
      options.append(PipelineArgument.Entry("sort", .array([score])))
      options.append(PipelineArgument.Entry("limit", .constant(.integer(Int64(limit)))))
    }
    let stages = [
      PipelineCall("collection", [.constant(.reference("/posts"))]), PipelineCall("search", [], options: options),
    ]
    let cursor = try service.executePipeline(ExecutePipelineRequest(StructuredPipeline(stages)), in: id, as: .admin)
    var count = 0
    while !cursor.isAtEnd {
      try cursor.slice { _ in
        count += 1
        return true
      }
    }
    return count
  }
}

/// Words of syllables. The frequency of a word is inverse to its rank.
private struct Vocabulary {
  let words: [String]
  /// The sums of the frequencies up to each word.
  private let sums: [Double]

  init(_ count: Int) {
    let syllables = ["ba", "ke", "li", "mo", "nu", "pra", "ste", "vin", "zor", "tal"]
    words = (0..<count).map { number in
      var (rest, word) = (number + 10_000, "")
      while rest > 0 {
        word += syllables[rest % 10]
        rest /= 10
      }
      return word
    }
    var sum = 0.0
    sums = (1...count).map { rank in
      sum += 1 / Double(rank)
      return sum
    }
  }

  func sentence(_ count: Int, _ random: inout SampleGenerator) -> String {
    (0..<count).map { _ in
      let wanted = Double(random.next() >> 11) / Double(1 << 53) * (sums.last ?? 1)
      var (low, high) = (0, sums.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if sums[middle] < wanted { low = middle + 1 } else { high = middle }
      }
      return words[low]
    }.joined(separator: " ")
  }
}
