import Foundation
import Glibc
package import Testing

/// Something outside the repository that some tests need: a program, a right, a limit of the system.
///
/// A test whose requirement is missing is skipped with the reason, and `make test` lists it at its end. In continuous
/// integration, where `HEARTH_REQUIRE_ALL_TESTS` is 1, it fails instead, unless ``mayBeMissing`` is `true`.
package struct Requirement: Sendable {
  /// The reason that a skipped test prints: what is missing, and how to get it.
  package let reason: String
  /// Whether continuous integration may lack it. Keep this list short.
  package let mayBeMissing: Bool
  private let isMet: @Sendable () -> Bool

  private init(_ reason: String, mayBeMissing: Bool = false, _ isMet: @escaping @Sendable () -> Bool) {
    self.reason = reason
    self.mayBeMissing = mayBeMissing
    self.isMet = isMet
  }

  /// The `hearth` binary. `swift build --build-tests` builds it.
  package static let hearth = Requirement("the hearth binary is not beside the tests; run swift build --build-tests") {
    HearthBinary.path != nil
  }

  /// The official emulator, which comes from Google's package archive.
  package static let emulator = Requirement("Java or the official emulator is not installed", mayBeMissing: true) {
    EmulatorProcess.isInstalled
  }

  /// The binary of an earlier build. `make upgrade-test` builds it.
  package static let previousBuild = Requirement(
    "HEARTH_PREVIOUS_BINARY names no binary of an earlier build; run make upgrade-test", mayBeMissing: true
  ) { HearthBinary.previousPath.map { access($0, X_OK) == 0 } ?? false }

  /// Google's client libraries, which come from a package registry.
  package static let pythonClients = Requirement(
    "Google's Python clients are not installed; run .ci/clients/install", mayBeMissing: true
  ) { PythonClients.interpreter != nil }

  /// A store with the API of Amazon S3, which comes from a package registry.
  package static let s3Store = Requirement(
    "moto, a store with the API of Amazon S3, is not installed; run .ci/clients/install", mayBeMissing: true
  ) { PythonClients.storeInterpreter != nil }

  /// The compiler, for tests that check what does not compile.
  package static let compiler = Requirement("swiftc is not in PATH") {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
      access("\($0)/swiftc", X_OK) == 0
    }
  }

  /// PostgreSQL 15, as Debian installs it.
  package static let postgres = Requirement(
    "PostgreSQL is not installed (Debian: postgresql-15)", mayBeMissing: true
  ) { access("/usr/lib/postgresql/15/bin/postgres", X_OK) == 0 }

  /// The rights of root.
  package static let root = Requirement("only root can give files to another user", mayBeMissing: true) {
    geteuid() == 0
  }

  /// The right to mount file systems, which root lacks in most containers.
  package static let mounting = Requirement("mounting a small disk needs CAP_SYS_ADMIN", mayBeMissing: true) {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
    let rights = line.flatMap { UInt64($0.dropFirst(7).trimmingCharacters(in: .whitespaces), radix: 16) } ?? 0
    // CAP_SYS_ADMIN is number 21.
    return rights >> 21 & 1 == 1
  }

  /// The right to make network namespaces, and `ip` to do it.
  package static let networks = Requirement(
    "making network namespaces needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN, and ip (Debian: iproute2)",
    mayBeMissing: true
  ) { geteuid() == 0 && Tool.ip.path != nil && (try? TestNetwork(nodes: 1)) != nil }

  /// A limit of at least `count` open files for this process. The limit is raised if the system permits it.
  package static func openFiles(_ count: Int) -> Requirement {
    Requirement("the limit of open files is below \(count); see ulimit -Hn", mayBeMissing: true) {
      var limit = rlimit()
      let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      getrlimit(files, &limit)
      if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max
        setrlimit(files, &limit)
      }
      return limit.rlim_cur >= count
    }
  }

  /// A program of another project.
  package static func tool(_ tool: Tool) -> Requirement {
    Requirement("\(tool.name) is not installed (Debian: \(tool.package))", mayBeMissing: tool.mayBeMissing) {
      tool.path != nil
    }
  }

  /// Returns a requirement that is also met if an environment variable names a substitute, such as a running server.
  package func orVariable(_ name: String) -> Requirement {
    Requirement(reason, mayBeMissing: mayBeMissing) { [isMet] in
      ProcessInfo.processInfo.environment[name] != nil || isMet()
    }
  }

  /// Returns whether a test can run.
  /// - Throws: ``MissingRequirement`` if it cannot, but must run.
  package func canRun() throws -> Bool {
    if isMet() { return true }
    let environment = ProcessInfo.processInfo.environment
    if environment["HEARTH_REQUIRE_ALL_TESTS"] == "1", !mayBeMissing { throw MissingRequirement(reason: reason) }
    return false
  }
}

/// The failure of a test that must run, but lacks a requirement.
package struct MissingRequirement: Error, CustomStringConvertible {
  let reason: String

  package var description: String { "This test must run, because HEARTH_REQUIRE_ALL_TESTS is 1, but \(reason)." }
}

extension Trait where Self == ConditionTrait {
  /// Runs a test or suite only if a requirement is met. See ``Requirement`` for what happens otherwise.
  package static func needs(_ requirement: Requirement) -> Self {
    .enabled(Comment(rawValue: requirement.reason)) { try requirement.canRun() }
  }
}
