import DocumentModel
import DocumentStore
import Foundation
import Glibc
import Synchronization

/// The reason why a benchmark cannot run, as text for the user.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A mutex that can be a static constant.
final class Lock<Value>: Sendable {
  private let mutex: Mutex<Value>
  init(_ value: sending Value) { mutex = Mutex(value) }
  func withLock<R>(_ body: (inout sending Value) -> sending R) -> sending R { mutex.withLock(body) }
}

/// Measures time since its creation, on the monotonic clock.
struct Stopwatch {
  private let start = ContinuousClock.now

  /// Seconds since the start.
  var seconds: Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}

/// The resources that benchmarks share: paths, a scratch directory and progress messages.
enum Run {
  /// The folder of this program, which also contains `hearth`.
  static let productsDirectory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().path

  /// A directory on the same disk as the build, removed at the end of the run.
  static let scratchDirectory = "\(productsDirectory)/benchmark-scratch-\(getpid())"

  /// Creates an empty directory in the scratch directory.
  static func makeDirectory(_ name: String) throws -> String {
    let path = "\(scratchDirectory)/\(name)"
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  /// Removes the scratch directory.
  static func cleanUp() {
    try? FileManager.default.removeItem(atPath: scratchDirectory)
  }

  /// Prints a progress message on standard error. Results go to standard output.
  static func progress(_ text: String) {
    FileHandle.standardError.write(Data("… \(text)\n".utf8))
  }

  /// Ends children and removes files if a signal ends the run.
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

extension DatabaseRegistry {
  /// Returns a database that the server serves.
  func opened(_ id: DatabaseID) throws -> DocumentDatabase {
    guard let database = try database(id) else { throw BenchmarkError("\(id.name) is not served") }
    return database
  }
}
