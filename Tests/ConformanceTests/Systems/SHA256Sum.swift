import Foundation
import TestSupport

/// Digests computed by a system program, so that the server's code does not check itself.
enum SHA256Sum {
  /// The SHA-256 digest of `content` in hexadecimal.
  static func of(_ content: [UInt8]) throws -> String {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/content"
    try Data(content).write(to: URL(fileURLWithPath: file))
    let program = try ServerProcess(executable: "/usr/bin/sha256sum", arguments: [file])
    guard program.waitForExit(timeoutSeconds: 30) == .code(0) else {
      throw ServerProcessError(description: "sha256sum: \(program.output)")
    }
    return String(program.output.prefix(64))
  }
}
