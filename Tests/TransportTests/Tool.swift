import Foundation
import TestSupport

/// An independent program to compare with. Tests that need one are skipped if it is not installed.
struct Tool: Sendable {
  static let curl = Tool("curl")
  static let h2load = Tool("h2load")
  static let nghttp = Tool("nghttp")
  static let openssl = Tool("openssl")

  struct Outcome {
    var status: Int32
    var output: String
    var errors: String
  }

  /// Far above the need of any test.
  private static let secondsMax = 60

  private let path: String?

  private init(_ name: String) {
    path = ["/usr/bin/", "/usr/local/bin/", "/bin/"].map { $0 + name }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  var isThere: Bool { path != nil }

  /// Runs the program to its end. Its output goes to files, so it can be of any length.
  ///
  /// - Parameter keepsInputOpen: for a program that would stop at the end of its input, but also ends by itself.
  func run(_ arguments: [String], input: String = "", keepsInputOpen: Bool = false) throws -> Outcome {
    guard let path else { throw CocoaError(.fileNoSuchFile) }
    let directory = try TemporaryDirectory()
    let files = ["output", "errors"].map { URL(fileURLWithPath: directory.path + "/" + $0) }
    for file in files { try Data().write(to: file) }
    let pipe = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
    process.arguments = ["\(Self.secondsMax)", path] + arguments
    process.standardInput = pipe
    process.standardOutput = try FileHandle(forWritingTo: files[0])
    process.standardError = try FileHandle(forWritingTo: files[1])
    try process.run()
    // The input is short, so the pipe takes it immediately.
    try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    if !keepsInputOpen { try pipe.fileHandleForWriting.close() }
    process.waitUntilExit()
    let texts = try files.map { String(decoding: try Data(contentsOf: $0), as: UTF8.self) }
    return Outcome(status: process.terminationStatus, output: texts[0], errors: texts[1])
  }
}
