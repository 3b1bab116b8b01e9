import Callers
import Dispatch
import Foundation
import HearthServer
import Synchronization

extension Benchmark {
  static let fork = Benchmark(
    name: "fork",
    summary: "fork, first read and reset of a server in a test process",
    meaning: """
      Medians and the slowest tenth, in milliseconds, on one thread. A fork is a server with its own documents, indexes,
      rules and accounts, ready for requests. A reset restores the state at the fork after a document was written. The
      first read is one document with rules evaluated, from the call to the last byte. It includes the way to an event
      loop and back. The last column is the number of descriptors that the process has open at the end, less those at
      the start.
      """
  ) {
    var table = ResultTable(
      "documents", "forks", "fork", "slowest 10 %", "first read", "reset", "mark", "descriptors left")
    for (documents, count) in [(1_000, 2_000), (10_000, 500)] {
      Run.progress("fork: \(documents) documents")
      let base = try TestServer(rules: .text(forkRules), fixtures: [.text(forkedTree(documents))])
      try measure(base, count: 20, into: nil)
      let held = descriptors()
      var times = Times()
      try measure(base, count: count, into: &times)
      // Wait until the released forks have ended on their loops.
      usleep(200_000)
      table.add(
        Format.count(Double(documents)), Format.count(Double(count)), milliseconds(times.fork, 0.5),
        milliseconds(times.fork, 0.9), milliseconds(times.read, 0.5), milliseconds(times.reset, 0.5),
        documents == 1_000 ? "< 1 ms each" : "", "\(descriptors() - held)")
    }
    Run.progress("fork: 10,000 forks of 1,000 documents")
    let base = try TestServer(rules: .text(forkRules), fixtures: [.text(forkedTree(1_000))])
    try measure(base, count: 20, into: nil)
    let before = (descriptors(), residentKiB())
    try measure(base, count: 10_000, into: nil)
    usleep(200_000)
    table.notes.append(
      "10,000 forks one after the other: \(before.0) descriptors became \(descriptors()), "
        + "\(before.1 >> 10) MiB of memory became \(residentKiB() >> 10) MiB")
    return table
  }

  private struct Times {
    var fork: [Double] = []
    var read: [Double] = []
    var reset: [Double] = []
  }

  private static let forkRules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{db}/documents { match /tasks/{id} { allow read, write: if request.auth.uid == 'ann'; } }
    }
    """
  private static let forkedDocument = "/v1/projects/demo/databases/(default)/documents/tasks/t7"

  private static func forkedTree(_ documents: Int) -> String {
    var samples = SampleDocuments()
    let members = (0..<documents).map { #""t\#($0)": \#(samples.nextJSON())"# }
    return #"{"$collections": ["tasks"], "tasks": {"# + members.joined(separator: ",\n") + "}}"
  }

  private static func measure(_ base: TestServer, count: Int, into times: UnsafeMutablePointer<Times>?) throws {
    let measured = Mutex<Result<Times, any Error>>(.success(Times()))
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      let result: Result<Times, any Error>
      do { result = .success(try await run(base, count)) } catch { result = .failure(error) }
      measured.withLock { $0 = result }
      isDone.signal()
    }
    isDone.wait()
    let result = try measured.withLock { $0 }.get()
    times?.pointee = result
  }

  private static func run(_ base: TestServer, _ count: Int) async throws -> Times {
    var times = Times()
    for _ in 0..<count {
      var watch = Stopwatch()
      let db = try base.fork()
      times.fork.append(watch.seconds)
      watch = Stopwatch()
      let reply = try await db.respond(to: .init("GET", forkedDocument), as: .user("ann"))
      _ = try await reply.bytes()
      times.read.append(watch.seconds)
      let change = try await db.respond(to: .init("PATCH", forkedDocument, body: "{}"), as: .user("ann"))
      _ = try await change.bytes()
      guard reply.status == 200, change.status == 200 else { throw BenchmarkError("a request was refused") }
      watch = Stopwatch()
      try db.reset()
      times.reset.append(watch.seconds)
    }
    return times
  }

  private static func milliseconds(_ seconds: [Double], _ part: Double) -> String {
    let sorted = seconds.sorted()
    guard !sorted.isEmpty else { return "–" }
    return String(format: "%.2f", 1000 * sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))])
  }

  private static func descriptors() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
  }

  private static func residentKiB() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS") } ?? ""
    return Int(line.filter(\.isNumber)) ?? 0
  }
}
