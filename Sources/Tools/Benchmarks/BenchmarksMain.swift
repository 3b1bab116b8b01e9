import Foundation

/// `Benchmarks list` and `Benchmarks run [--record] [NAME…]`.
@main
enum BenchmarksMain {
  private static let usage = """
    Usage: Benchmarks list
           Benchmarks run [--record] [NAME…]

    Runs benchmarks, all of them unless named, and prints their tables. With --record the tables also replace those of
    the same benchmarks in docs/performance.md, and no others. Peers that are not installed are skipped.
    Everything listens on loopback only.

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
        fail("unknown benchmark '\(name)'; `Benchmarks list` prints all names\n", status: 64)
      }
      run(Benchmark.all.filter { arguments.isEmpty || arguments.contains($0.name) }, isRecorded: isRecorded)
    default: fail(usage, status: 64)
    }
  }

  private static func run(_ benchmarks: [Benchmark], isRecorded: Bool) {
    guard findProgram("wrk") != nil else { fail("wrk is not installed (Debian: wrk)\n", status: 1) }
    do { _ = try Run.makeDirectory("") } catch { fail("cannot create a scratch directory: \(error)\n", status: 1) }
    let signals = Run.cleanUpOnSignals()
    defer { signals.forEach { $0.cancel() } }
    // Every table names its machine, because the tables next to it may be from other machines and times.
    let machine = "Measured on \(Machine.description)."
    var sections: [(name: String, text: String)] = []
    var failures = 0
    for benchmark in benchmarks {
      var section = "## \(benchmark.name): \(benchmark.summary)\n\n\(machine)\n\n"
      do {
        section += "\(try benchmark.run().markdown)\n\n\(benchmark.meaning)\n"
        sections.append((benchmark.name, section))
      } catch {
        // A failed benchmark does not replace its recorded table.
        section += "Could not be measured: \(error)\n"
        failures += 1
      }
      print(section)
      fflush(nil)
    }
    Run.cleanUp()
    if isRecorded { failures += Results.record(sections) ? 0 : 1 }
    exit(failures == 0 ? 0 : 1)
  }

  private static func fail(_ text: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data(text.utf8))
    exit(status)
  }
}
