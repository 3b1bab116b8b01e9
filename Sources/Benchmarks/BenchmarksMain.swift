import Foundation

/// `Benchmarks list` and `Benchmarks run [--record] [NAME…]`.
@main
enum BenchmarksMain {
  private static let usage = """
    Usage: Benchmarks list
           Benchmarks run [--record] [NAME…]

    Runs benchmarks, all of them unless named, and prints their tables. With --record the tables also replace those in
    Sources/Benchmarks/RESULTS.md. Peers that are not installed are skipped. Everything listens on loopback only.

    """

  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    guard !arguments.isEmpty else { fail(usage, status: 64) }
    switch arguments.removeFirst() {
    case "list":
      for benchmark in Benchmark.all { print("\(benchmark.name): \(benchmark.summary)") }
    case "run":
      let isRecorded = arguments.contains("--record")
      arguments.removeAll { $0 == "--record" }
      for name in arguments where !Benchmark.all.contains(where: { $0.name == name }) {
        fail("no benchmark is called '\(name)'; `Benchmarks list` names them\n", status: 64)
      }
      run(Benchmark.all.filter { arguments.isEmpty || arguments.contains($0.name) }, isRecorded: isRecorded)
    default: fail(usage, status: 64)
    }
  }

  private static func run(_ benchmarks: [Benchmark], isRecorded: Bool) {
    guard findProgram("wrk") != nil else { fail("wrk is not installed (Debian: wrk)\n", status: 1) }
    do { _ = try Run.makeDirectory("") } catch { fail("no scratch directory can be made: \(error)\n", status: 1) }
    let signals = Run.cleanUpOnSignals()
    defer { signals.forEach { $0.cancel() } }
    var report = "Measured on \(Machine.description).\n"
    var failures = 0
    print(report)
    for benchmark in benchmarks {
      var section = "## \(benchmark.name): \(benchmark.summary)\n\n"
      do {
        section += "\(try benchmark.run().markdown)\n\n\(benchmark.meaning)\n"
      } catch {
        section += "Could not be measured: \(error)\n"
        failures += 1
      }
      print(section)
      fflush(nil)
      report += "\n\(section)"
    }
    Run.cleanUp()
    if isRecorded { failures += Results.record(report) ? 0 : 1 }
    exit(failures == 0 ? 0 : 1)
  }

  private static func fail(_ text: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data(text.utf8))
    exit(status)
  }
}

/// The results kept in the repository: words by hand, and below a marker the tables of the last recorded run.
enum Results {
  private static let path = "Sources/Benchmarks/RESULTS.md"
  private static let marker = "<!-- Below this line: written by `Benchmarks run --record`. -->\n"

  /// Replaces the tables; `false`, with a word on standard error, where the file is not to be found.
  static func record(_ report: String) -> Bool {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8), let place = text.range(of: marker) else {
      Run.progress("not recorded: run from the top of the repository, where \(path) is")
      return false
    }
    let recorded = text[..<place.upperBound] + "\n" + report
    return (try? String(recorded).write(toFile: path, atomically: true, encoding: .utf8)) != nil
  }
}
