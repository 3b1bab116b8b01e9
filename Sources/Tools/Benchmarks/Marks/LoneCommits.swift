import Callers
import DatabaseService
import Dispatch
import DocumentModel
import Foundation
import Glibc
import HearthServer

/// Commits one after the other in this process, without HTTP, and bare appends of as many bytes, each with `fdatasync`.
///
/// They take turns, so both see the same disk and the same other programs. A bare append writes within blocks that are
/// written already, as the log does.
struct LoneCommits {
  /// The median times, in microseconds.
  let commit: Double
  let append: Double
  /// The bytes of an append.
  let bytes: Int

  private static let rounds = 1500
  private static let fileBytes = 8 << 20

  /// Measures in an empty directory.
  /// - Throws: ``BenchmarkError`` if a commit or an append fails.
  static func run(in directory: String) throws -> LoneCommits {
    var configuration = HearthConfiguration(storage: .directory("\(directory)/data"))
    configuration.mode = .emulator
    configuration.port = 0
    configuration.usesCommitLog = true
    let server = try Server(configuration)
    defer { server.stop() }
    guard let id = DatabaseID(project: "bench") else { throw BenchmarkError("`bench` is not a valid project id") }
    var samples = SampleDocuments()
    func commit(_ number: Int) throws {
      guard let key = DocumentKey(ResourcePath(uncheckedBytes: Array("tasks/t\(number)".utf8))) else { return }
      let done = DispatchSemaphore(value: 0)
      let failures = Lock(0)
      try server.service.commit([Write(.update(samples.next(), mask: nil), key: key)], in: id, as: .admin) { result in
        if case .failure = result { failures.withLock { $0 += 1 } }
        done.signal()
      }
      done.wait()
      guard failures.withLock({ $0 }) == 0 else { throw BenchmarkError("a commit failed") }
    }
    // The first commits create the log and the rows of the database.
    for number in 0..<100 { try commit(number) }
    let before = Benchmark.bytesHandedToKernel()
    for number in 100..<200 { try commit(number) }
    let bytes = (Benchmark.bytesHandedToKernel() - before) / 100

    let file = open("\(directory)/bare", O_RDWR | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    let zeros = [UInt8](repeating: 0, count: fileBytes)
    guard file >= 0, pwrite(file, zeros, zeros.count, 0) == zeros.count, fdatasync(file) == 0 else {
      throw BenchmarkError("cannot write to \(directory)")
    }
    let record = [UInt8](repeating: 0x68, count: bytes)
    var (commits, appends): ([Double], [Double]) = ([], [])
    for round in 0..<rounds {
      var watch = Stopwatch()
      try commit(200 + round)
      commits.append(watch.seconds)
      watch = Stopwatch()
      let offset = off_t(round * bytes % (fileBytes - bytes))
      guard pwrite(file, record, bytes, offset) == bytes, fdatasync(file) == 0 else {
        throw BenchmarkError("cannot write to \(directory)")
      }
      appends.append(watch.seconds)
    }
    func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] * 1e6 }
    return LoneCommits(commit: median(commits), append: median(appends), bytes: bytes)
  }
}
