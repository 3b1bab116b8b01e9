import Foundation
import Glibc

/// One run of one fuzzer in its own process, so that a trap or a hang is a result and does not end the program.
struct Campaign {
  let fuzzer: Fuzzer
  let seconds: Double
  let seed: UInt64

  /// Seconds beyond the time of a run after which an input counts as hanging.
  private static let hangSeconds = 20.0

  enum Outcome {
    case passed(inputs: Int)
    case failed(reason: String, input: [UInt8], number: Int)
  }

  /// Runs inputs in this process until the time is over.
  func runHere(noting current: CurrentInput) {
    var mutator = Mutator(fuzzer, seed: seed)
    let start = ContinuousClock.now
    let length = Duration.milliseconds(Int(seconds * 1000))
    var number = 0
    while ContinuousClock.now - start < length {
      let input = number < fuzzer.corpus.count ? fuzzer.corpus[number] : mutator.next()
      number += 1
      current.set(input, number: number)
      input.withUnsafeBytes(fuzzer.run)
    }
  }

  /// Runs the inputs in a child process and waits for it.
  func run() throws -> Outcome {
    let file = NSTemporaryDirectory() + "hearth-fuzz-\(fuzzer.name)-\(getpid()).input"
    defer { unlink(file) }
    guard let current = CurrentInput(file: file) else { throw CocoaError(.fileWriteUnknown) }
    defer { current.unmap() }
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    child.arguments = ["child", fuzzer.name, "\(seconds)", "\(seed)", file]
    if fuzzer.mustFail {
      var environment = ProcessInfo.processInfo.environment
      environment["SWIFT_BACKTRACE"] = "enable=no"
      child.environment = environment
      child.standardError = FileHandle.nullDevice
    }
    try child.run()
    let deadline = ContinuousClock.now + .milliseconds(Int((seconds + Self.hangSeconds) * 1000))
    while child.isRunning, ContinuousClock.now < deadline { usleep(5_000) }
    if child.isRunning {
      kill(child.processIdentifier, SIGKILL)
      child.waitUntilExit()
      return .failed(
        reason: "an input takes longer than \(Int(Self.hangSeconds)) s", input: current.bytes, number: current.number)
    }
    if child.terminationReason == .exit, child.terminationStatus == 0 { return .passed(inputs: current.number) }
    let reason = child.terminationReason == .exit ? "exit status" : "signal"
    return .failed(reason: "\(reason) \(child.terminationStatus)", input: current.bytes, number: current.number)
  }

  /// Runs the fuzzer, prints one line and saves a failing input to a file. Returns whether the result is as
  /// expected.
  func report() -> Bool {
    do {
      switch try run() {
      case .passed(let inputs):
        print("\(fuzzer.mustFail ? "FAILED" : "passed") \(fuzzer.name): \(inputs) inputs, seed \(seed)")
        if fuzzer.mustFail { print("  it should have failed, so failures may go unnoticed") }
        return !fuzzer.mustFail
      case .failed(let reason, _, let number) where fuzzer.mustFail:
        print("passed \(fuzzer.name): failed as expected, \(reason) at input \(number), seed \(seed)")
        return true
      case .failed(let reason, let input, let number):
        let file = "fuzz-\(fuzzer.name)-\(seed).input"
        try Data(input).write(to: URL(fileURLWithPath: file))
        print("FAILED \(fuzzer.name): \(reason) at input \(number), seed \(seed)")
        print("  the input is in \(file); run it again: Fuzzers replay \(fuzzer.name) \(file)")
        return false
      }
    } catch {
      print("FAILED \(fuzzer.name): cannot run: \(error)")
      return false
    }
  }
}
