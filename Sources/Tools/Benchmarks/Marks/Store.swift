import Callers
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import RulesEngine
import WireFormat

extension Benchmark {
  static let store = Benchmark(
    name: "store",
    summary: "reads and commits in this process, without HTTP",
    meaning: """
      Each row is the cost of a DatabaseService call on one thread. A read opens a snapshot, looks up the collection and
      the document, and verifies the document's checksum. With rules, it also checks the token and the document. JSON is
      written into new memory, as for a response. "One after the other" waits for each commit, so each has its own write
      transaction. 64 concurrent commits share transactions. The bytes are those that LMDB passes to the kernel for one
      commit alone: whole pages of 4 KiB, one for each changed page on the path through each table.
      """
  ) {
    var table = ResultTable("work", "µs each", "per second", "bytes written")
    let server = try Server(configuration(.inMemory))
    defer { server.stop() }
    let service = server.service
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    var samples = SampleDocuments()
    let keys = (0..<10_000).compactMap { DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\($0)".utf8))) }

    Run.progress("store: commits in memory")
    let alone = try commits(keys.map { Write(.update(samples.next(), mask: nil), key: $0) }, service, id, underWay: 1)
    row("commit of a new document, in memory, one after the other", seconds: alone, of: keys.count)
    let updates = keys.map { Write(.update(samples.next(), mask: nil), key: $0) }
    row(
      "commit that changes all five fields, in memory, 64 under way",
      seconds: try commits(updates, service, id, underWay: 64), of: keys.count)

    Run.progress("store: reads")
    let reads = 300_000
    let database = try server.registry.opened(id)
    try time("snapshot, nothing read", reads) { _ in try database.read { _ in } }
    try time("get", reads) { index in
      try service.getDocument(keys[index % keys.count], in: id, as: .admin) { document, _ in _ = document.fields.count }
    }
    service.rules(as: try service.administrator(.admin)).upload(
      try Ruleset(
        compiling: """
          rules_version = '2';
          service cloud.firestore {
            match /databases/{database}/documents/tasks/{task} {
              allow get: if request.auth != null && request.auth.uid == 'ann' && resource.data.title is string;
            }
          }
          """), to: .database(id))
    let ann = Caller.user(RulesAuth(uid: "ann", claims: MapValue([("sub", .string("ann"))])))
    try time("get, rules evaluated", reads) { index in
      try service.getDocument(keys[index % keys.count], in: id, as: ann) { document, _ in _ = document.fields.count }
    }
    for (name, style) in [("compact", JSONWriter.Style.compact), ("indented", .pretty)] {
      let root = Array(id.documentsRoot.utf8)
      try time("get and write \(name) JSON", reads) { index in
        let key = keys[index % keys.count]
        try service.getDocument(key, in: id, as: .admin) { document, _ in
          var json = JSONWriter(style)
          try root.withUnsafeBytes { root in
            try key.path.bytes.withUnsafeBytes { path in
              try DocumentJSON.append(
                EncodedDocument(
                  root: root, path: path, fields: document.fields,
                  createTime: Timestamp(uncheckedMicroseconds: document.createVersion),
                  updateTime: Timestamp(uncheckedMicroseconds: document.updateVersion)), to: &json)
            }
          }
          guard json.bytes.count > 100 else { throw BenchmarkError("a document is empty") }
        }
      }
    }

    Run.progress("store: bytes of a durable commit")
    let durable = try Server(configuration(.directory(try Run.makeDirectory("store"))))
    defer { durable.stop() }
    // Fill the database first, so that its trees have the usual depth.
    _ = try commits(
      keys.map { Write(.update(samples.next(), mask: nil), key: $0) }, durable.service, id, underWay: 2_000)
    let few = 300
    let fresh = (0..<few).compactMap { DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/u\($0)".utf8))) }
    let before = bytesHandedToKernel()
    let seconds = try commits(
      fresh.map { Write(.update(samples.next(), mask: nil), key: $0) }, durable.service, id, underWay: 1)
    row(
      "commit of a new document, synced, one after the other", seconds: seconds, of: few,
      bytes: Double(bytesHandedToKernel() - before) / Double(few))
    Run.progress("store: cost of indexes")
    for fields in [1, 10] {
      let writes = (0..<few).compactMap { number in
        DocumentKey(ResourcePath(uncheckedBytes: Array("wide\(fields)/w\(number)".utf8))).map {
          Write(.update(Self.document(fields: fields, number), mask: nil), key: $0)
        }
      }
      let before = bytesHandedToKernel()
      let seconds = try commits(writes, durable.service, id, underWay: 1)
      row(
        "commit of a new document of \(fields) fields, 200 bytes, synced", seconds: seconds, of: few,
        bytes: Double(bytesHandedToKernel() - before) / Double(few))
    }
    return table

    func row(_ name: String, seconds: Double, of count: Int, bytes: Double? = nil) {
      table.add(
        name, Format.tenths(seconds / Double(count) * 1e6), Format.count(Double(count) / seconds),
        bytes.map(Format.count) ?? "")
    }
    func time(_ name: String, _ count: Int, _ body: (Int) throws -> Void) rethrows {
      for index in 0..<count / 10 { try body(index) }
      let watch = Stopwatch()
      for index in 0..<count { try body(index) }
      row(name, seconds: watch.seconds, of: count)
    }
  }

  /// Returns a document of `fields` texts with 200 bytes in total.
  private static func document(fields: Int, _ number: Int) -> EncodedFields {
    let text = String(repeating: "x", count: 200 / fields - 6)
    return EncodedFields(
      MapValue((0..<fields).map { ("f\($0)", .string("\(100_000 + number * 7919 % 99_991)\(text)")) }))
  }

  private static func configuration(_ storage: HearthConfiguration.Storage) -> HearthConfiguration {
    var configuration = HearthConfiguration(storage: storage)
    configuration.mode = .emulator
    configuration.port = 0
    return configuration
  }

  /// Returns the seconds to commit each write on its own, with the given number of commits under way.
  private static func commits(
    _ writes: [Write], _ service: FirestoreService, _ id: DatabaseID, underWay: Int
  ) throws -> Double {
    let places = DispatchSemaphore(value: underWay)
    let failures = Lock(0)
    let watch = Stopwatch()
    for write in writes {
      places.wait()
      try service.commit([write], in: id, as: .admin) { result in
        if case .failure = result { failures.withLock { $0 += 1 } }
        places.signal()
      }
    }
    for _ in 0..<underWay { places.wait() }
    let seconds = watch.seconds
    for _ in 0..<underWay { places.signal() }
    guard failures.withLock({ $0 }) == 0 else { throw BenchmarkError("commits failed") }
    return seconds
  }

  /// Returns the bytes that this process has written so far, to files and otherwise.
  static func bytesHandedToKernel() -> Int {
    let lines = (try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)) ?? ""
    return lines.split(separator: "\n").first { $0.hasPrefix("wchar:") }.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }
}
