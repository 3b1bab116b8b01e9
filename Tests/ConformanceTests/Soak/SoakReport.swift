import Foundation
import Glibc
import TestSupport

/// The measurements of a soak, and the promises that the server broke. Any thread may use it.
final class SoakReport: Sendable {
  /// A kind of request, by the time that a client waits for its response.
  enum Kind: String, CaseIterable, Sendable { case commit, get, query, health }

  struct Numbers: Sendable {
    var milliseconds: [Kind: [Double]] = [:]
    var errors: [String: Int] = [:]
    var problems: [String] = []
    var startMebibytes = 0
    var peakMebibytes = 0
    var endMebibytes = 0
    var descriptorsMax = 0
    var descriptorsEnd = 0
    var deliveredChanges = 0
    var memory: [Int] = []
  }

  /// The most times kept for each kind; then every second one is dropped.
  private static let timesMax = 200_000
  let numbers = Observed(Numbers())

  /// Counts a response and the time that the client waited for it.
  func took(_ kind: Kind, since start: ContinuousClock.Instant) {
    let milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
    numbers.update { numbers in
      numbers.milliseconds[kind, default: []].append(milliseconds)
      if numbers.milliseconds[kind, default: []].count > Self.timesMax {
        numbers.milliseconds[kind] = numbers.milliseconds[kind]?.enumerated().filter { $0.offset % 2 == 0 }.map(
          \.element)
      }
    }
  }

  /// Counts an error that the faults of a soak may cause.
  func failed(_ what: String) { numbers.update { $0.errors[what, default: 0] += 1 } }

  /// Notes a broken promise.
  func problem(_ text: String) { numbers.update { if $0.problems.count < 50 { $0.problems.append(text) } } }

  /// Reads the memory and the descriptors of a process.
  func sample(_ process: pid_t) {
    guard let use = ProcessUse(of: process) else { return }
    numbers.update {
      $0.peakMebibytes = max($0.peakMebibytes, use.mebibytes)
      $0.memory.append(use.mebibytes)
      $0.descriptorsMax = max($0.descriptorsMax, use.descriptors)
      $0.descriptorsEnd = use.descriptors
    }
  }

  /// The time that this part of the requests needed at most, in milliseconds.
  static func percentile(_ part: Double, of times: [Double]) -> Double {
    guard !times.isEmpty else { return 0 }
    let sorted = times.sorted()
    return sorted[min(Int(Double(sorted.count) * part), sorted.count - 1)]
  }

  /// The table at the end of a soak.
  func table(kills: Int, fills: Int) -> String {
    let numbers = numbers.value
    func row(_ name: String, _ text: String) -> String {
      "  \(name.padding(toLength: 32, withPad: " ", startingAt: 0))\(text)"
    }
    let step = max(numbers.memory.count / 10, 1)
    let course = stride(from: 0, to: numbers.memory.count, by: step).map { from in
      String(numbers.memory[from..<min(from + step, numbers.memory.count)].max() ?? 0)
    }
    var rows = [
      row("memory, MiB", "start \(numbers.startMebibytes), peak \(numbers.peakMebibytes), end \(numbers.endMebibytes)"),
      row("memory over time", course.joined(separator: " ")),
      row("descriptors", "at most \(numbers.descriptorsMax), end \(numbers.descriptorsEnd)"),
    ]
    for kind in Kind.allCases {
      let times = numbers.milliseconds[kind] ?? []
      let (middle, high) = (Self.percentile(0.5, of: times), Self.percentile(0.99, of: times))
      rows.append(
        row("\(kind.rawValue), ms", String(format: "p50 %.1f, p99 %.1f (%d samples)", middle, high, times.count)))
    }
    rows.append(row("changes delivered", "\(numbers.deliveredChanges)"))
    rows.append(row("faults", "\(kills) kills, \(fills) full disks"))
    for (error, count) in numbers.errors.sorted(by: { $0.key < $1.key }) {
      rows.append(row("error \(error)", "\(count)"))
    }
    return rows.joined(separator: "\n")
  }
}
