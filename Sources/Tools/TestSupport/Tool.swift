import Foundation

/// A program of another project that tests run, to compare with it or to prepare files.
package struct Tool: Sendable {
  package static let curl = Tool("curl", package: "curl")
  package static let openssl = Tool("openssl", package: "openssl")
  package static let setpriv = Tool("setpriv", package: "util-linux")
  package static let script = Tool("script", package: "bsdutils", mayBeMissing: true)
  package static let nghttp = Tool("nghttp", package: "nghttp2-client", mayBeMissing: true)
  package static let bash = Tool("bash", package: "bash")
  package static let zsh = Tool("zsh", package: "zsh", mayBeMissing: true)
  package static let fish = Tool("fish", package: "fish", mayBeMissing: true)
  package static let man = Tool("man", package: "man-db", mayBeMissing: true)
  package static let mandoc = Tool("mandoc", package: "mandoc", mayBeMissing: true)
  package static let nginx = Tool("nginx", package: "nginx; .ci/unpacked .build/peers nginx", mayBeMissing: true)
  package static let caddy = Tool("caddy", package: "caddy; .ci/unpacked .build/peers caddy", mayBeMissing: true)
  package static let etcd = Tool("etcd", package: "etcd-server", mayBeMissing: true)
  package static let patroni = Tool("patroni", package: "patroni, python3-etcd", mayBeMissing: true)
  package static let ip = Tool("ip", package: "iproute2", mayBeMissing: true)
  package static let h2load = Tool("h2load", package: "nghttp2-client", mayBeMissing: true)

  /// The result of running a program.
  package struct Outcome: Sendable {
    package var status: Int32
    package var output: String
    package var errors: String
  }

  package let name: String
  /// The Debian package that contains it.
  let package: String
  /// Whether continuous integration may lack it.
  let mayBeMissing: Bool
  /// The path, or `nil` if it is neither installed nor unpacked in `.build/peers`.
  package let path: String?
  /// Far above the need of any test.
  private static let secondsMax = 60

  private init(_ name: String, package: String, mayBeMissing: Bool = false) {
    self.name = name
    self.package = package
    self.mayBeMissing = mayBeMissing
    let unpacked = "\(GuidePage.root)/.build/peers/usr/"
    path = ["/usr/bin/", "/usr/local/bin/", "/bin/", "/usr/sbin/", "\(unpacked)bin/", "\(unpacked)sbin/"]
      .map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Runs the program to its end. Its output goes to files, so it can be of any length.
  ///
  /// - Parameter keepsInputOpen: for a program that would stop at the end of its input, but also ends by itself.
  /// - Throws: an error if the program is not installed.
  package func run(_ arguments: [String], input: String = "", keepsInputOpen: Bool = false) throws -> Outcome {
    guard let path else { throw CocoaError(.fileNoSuchFile) }
    let directory = try TemporaryDirectory()
    let files = ["output", "errors"].map { URL(fileURLWithPath: directory.file($0)) }
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
