import Foundation

/// A certificate authority for tests. The program `openssl` creates its certificates.
package struct TestAuthority {
  /// A certificate chain and its key, as files in PEM format.
  package struct Certificate: Sendable {
    package let file: String
    package let keyFile: String
    /// Keeps the files.
    fileprivate let directory: TemporaryDirectory
  }

  private static let openssl = "/usr/bin/openssl"

  /// The certificate of the authority.
  package var file: String { "\(directory.path)/ca.pem" }
  private let directory: TemporaryDirectory

  /// Creates an authority that is valid for two days.
  /// - Throws: ``ServerProcessError`` if `openssl` fails.
  package init() throws {
    directory = try TemporaryDirectory()
    try run(
      [
        "req", "-x509", "-days", "2", "-subj", "/CN=Test Authority", "-out", file, "-keyout",
        "\(directory.path)/ca.key",
      ]
        + Self.newKey)
  }

  /// Issues a certificate for names such as `DNS:localhost,IP:127.0.0.1`. It is valid for two days, or has been invalid
  /// for a day.
  /// - Throws: the error of the file system, or ``ServerProcessError`` if `openssl` fails.
  package func issue(for names: String, isExpired: Bool = false) throws -> Certificate {
    let path = "\(directory.path)/\(UUID().uuidString)"
    try "subjectAltName=\(names)".write(toFile: "\(path).names", atomically: false, encoding: .utf8)
    try run(["req", "-subj", "/CN=server", "-out", "\(path).request", "-keyout", "\(path).key"] + Self.newKey)
    try run([
      "x509", "-req", "-in", "\(path).request", "-CA", file, "-CAkey", "\(directory.path)/ca.key", "-CAcreateserial",
      "-days", isExpired ? "-1" : "2", "-extfile", "\(path).names", "-out", "\(path).pem",
    ])
    return Certificate(file: "\(path).pem", keyFile: "\(path).key", directory: directory)
  }

  private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

  private func run(_ arguments: [String]) throws {
    let process = try ServerProcess(executable: Self.openssl, arguments: arguments)
    guard process.waitForExit(timeoutSeconds: 60) == .code(0) else {
      throw ServerProcessError(description: "openssl \(arguments[0]) failed:\n\(process.output)")
    }
  }
}
