import Foundation

/// `Fuzzers list`, `Fuzzers run NAME [--seconds N] [--seed S]`, `Fuzzers smoke [--seconds N] [--seed S]`,
/// `Fuzzers replay NAME FILE`.
@main
enum FuzzersMain {
  private static let usage = """
    Usage: Fuzzers list
           Fuzzers run NAME [--seconds N] [--seed S]   one fuzzer, 60 seconds by default
           Fuzzers smoke [--seconds N] [--seed S]      every fuzzer, 2 seconds each by default
           Fuzzers replay NAME FILE                    one input, in this process

    A failing input is kept in a file in the working directory. The same seed makes the same inputs.

    """

  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let seconds = option("--seconds", &arguments, Double.init)
    let seed = option("--seed", &arguments, UInt64.init) ?? UInt64.random(in: 1..<1_000_000)
    switch (arguments.first, arguments.count) {
    case ("list", 1):
      for fuzzer in Fuzzer.all { print("\(fuzzer.name): \(fuzzer.summary)") }
    case ("run", 2):
      let campaign = Campaign(fuzzer: fuzzer(arguments[1]), seconds: seconds ?? 60, seed: seed)
      exit(campaign.report() ? 0 : 1)
    case ("smoke", 1):
      let passed = Fuzzer.all.map { Campaign(fuzzer: $0, seconds: seconds ?? 2, seed: seed).report() }
      exit(passed.allSatisfy { $0 } ? 0 : 1)
    case ("replay", 3):
      guard let input = FileManager.default.contents(atPath: arguments[2]) else { usageError() }
      [UInt8](input).withUnsafeBytes(fuzzer(arguments[1]).run)
      print("passed")
    case ("child", 5):
      guard let seconds = Double(arguments[2]), let seed = UInt64(arguments[3]),
        let current = CurrentInput(file: arguments[4])
      else { usageError() }
      Campaign(fuzzer: fuzzer(arguments[1]), seconds: seconds, seed: seed).runHere(noting: current)
    default: usageError()
    }
  }

  private static func fuzzer(_ name: String) -> Fuzzer {
    guard let fuzzer = Fuzzer.all.first(where: { $0.name == name }) else { usageError() }
    return fuzzer
  }

  private static func option<Value>(
    _ name: String, _ arguments: inout [String], _ parse: (String) -> Value?
  ) -> Value? {
    guard let index = arguments.firstIndex(of: name) else { return nil }
    guard index + 1 < arguments.count, let value = parse(arguments[index + 1]) else { usageError() }
    arguments.removeSubrange(index...(index + 1))
    return value
  }

  private static func usageError() -> Never {
    FileHandle.standardError.write(Data(usage.utf8))
    exit(64)
  }
}
