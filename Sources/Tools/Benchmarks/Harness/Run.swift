import Foundation
import Glibc
import Synchronization

/// Why a benchmark could not be run. The text is for a person.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A mutex that can be a constant of a type.
final class Lock<Value>: Sendable {
  private let mutex: Mutex<Value>
  init(_ value: sending Value) { mutex = Mutex(value) }
  func withLock<R>(_ body: (inout sending Value) -> sending R) -> sending R { mutex.withLock(body) }
}

/// Time since it was made, on the monotonic clock.
struct Stopwatch {
  private let start = ContinuousClock.now

  /// Seconds since the start.
  var seconds: Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}

/// What benchmarks share: where things are, a scratch directory that goes away, a voice.
enum Run {
  /// The folder of this program, where `hearth` lies too.
  static let productsDirectory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().path

  /// A directory on the disk that the build lies on; removed at the end of the run.
  static let scratchDirectory = "\(productsDirectory)/benchmark-scratch-\(getpid())"

  /// Makes a fresh directory in the scratch directory.
  static func makeDirectory(_ name: String) throws -> String {
    let path = "\(scratchDirectory)/\(name)"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  /// Removes what the run left on disk.
  static func cleanUp() {
    try? FileManager.default.removeItem(atPath: scratchDirectory)
  }

  /// Tells on standard error what happens now; results go to standard output.
  static func progress(_ text: String) {
    FileHandle.standardError.write(Data("… \(text)\n".utf8))
  }

  /// Ends children and removes files when a person or a time limit ends the run.
  static func cleanUpOnSignals() -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM, SIGHUP].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        RunningChildren.killAll()
        cleanUp()
        exit(128 + number)
      }
      source.resume()
      return source
    }
  }
}
