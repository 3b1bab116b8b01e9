import Testing

/// The arrows between modules point only down, and nothing is imported that `Package.swift` does not declare.
@Suite struct ImportTests {
  /// The modules from the ground up; one imports only from rows above its own.
  static let layers: [Set<String>] = [
    [
      "CCrypto", "CEpoll", "CHTTPParser", "CLMDB", "CNGHTTP2", "COpenSSL", "CRE2", "CSimdjson", "CSodium", "CTimex",
      "CUV", "CXCrypt", "CXXHash", "CZlib",
    ],
    ["Basics"],
    ["DocumentModel", "KeyValue", "Transport"],
    ["LMDBEngine", "WireFormat"],
    ["Accounts", "Files", "FixtureTree", "HearthClient", "KeyEncoding", "RulesEngine"],
    ["Matching"],
    ["DocumentStore", "RulesTesting"],
    ["QueryEngine"],
    ["Watch"],
    ["DatabaseService"],
    ["Gateway"],
    ["HearthServer"],
    ["HearthTesting", "TestSupport"],
    ["Benchmarks", "Fuzzers", "HearthCLI"],
    ["hearth"],
  ]

  /// Who may import a module, where that is less than "everything above". The reasons are in README.md.
  static let importers: [String: Set<String>] = [
    // The engine is chosen once; all else sees the seam. The command line checks and copies files with no server.
    "LMDBEngine": ["HearthServer", "HearthCLI", "Benchmarks"],
    // Sockets are for the front.
    "Transport": ["Gateway", "HearthServer", "HearthCLI", "Benchmarks", "Fuzzers"],
    // Each C library stands behind one Swift module.
    "CHTTPParser": ["Transport"], "CLMDB": ["LMDBEngine"], "CNGHTTP2": ["Transport"], "COpenSSL": ["Transport"],
    "CRE2": ["RulesEngine"], "CSimdjson": ["WireFormat"], "CUV": ["Transport"],
    // Benchmarks hold thousands of connections on one thread, and are no part of the server.
    "CEpoll": ["Benchmarks"],
    // Whether somebody sets the clock right is asked of the kernel, by `hearth doctor`.
    "CTimex": ["HearthCLI"],
    "CXXHash": ["DocumentStore"], "CSodium": ["Accounts"], "CXCrypt": ["Accounts"],
    // Checksums of files are libcrypto's and zlib's too.
    "CCrypto": ["Accounts", "Files"], "CZlib": ["Transport", "Files"],
    // The dialects are reached through the server.
    "Gateway": ["HearthServer"],
    "TestSupport": ["Benchmarks", "Fuzzers"],
    // The client stands alone, so that it builds where the server does not: on phones.
    "HearthClient": ["HearthTesting"],
  ]

  /// What comes with the toolchain.
  static let systemModules: Set<String> = ["Dispatch", "Glibc", "Synchronization"]
  static let foundationModules: Set<String> = ["Foundation", "FoundationEssentials", "FoundationNetworking"]

  /// Below these, Foundation stays out: it costs start-up time and memory, and its types allocate.
  static let foundationImporters: Set<String> = [
    "Benchmarks", "Fuzzers", "HearthClient", "HearthTesting", "TestSupport",
  ]

  @Test func packageDeclaresOnlyArrowsThatPointDown() throws {
    let targets = try Self.targets()
    for (target, dependencies) in targets where !target.hasSuffix("Tests") {
      guard let layer = Self.layers.firstIndex(where: { $0.contains(target) }) else {
        Issue.record("\(target) is in no layer; give it a place in ImportTests.layers")
        continue
      }
      for dependency in dependencies {
        let below = Self.layers[..<layer].contains { $0.contains(dependency) }
        #expect(below, "\(target) must not depend on \(dependency): the arrow does not point down")
        if let importers = Self.importers[dependency] {
          #expect(importers.contains(target), "\(target) must not depend on \(dependency); see ImportTests.importers")
        }
      }
    }
  }

  @Test func sourcesImportWhatPackageDeclares() throws {
    let targets = try Self.targets()
    for file in Repository.sources {
      let declared = try #require(targets[file.target], "no target \(file.target)")
      for module in Self.imports(of: file) {
        if Self.foundationModules.contains(module) {
          #expect(Self.foundationImporters.contains(file.target), "\(file.path) must not import \(module)")
        } else if !Self.systemModules.contains(module) {
          #expect(declared.contains(module), "\(file.path) imports \(module), which Package.swift does not declare")
        }
      }
    }
  }

  /// The modules a file imports, whatever attributes and access level the import has.
  static func imports(of file: SwiftFile) -> [String] {
    file.code.compactMap { line in
      let words = line.split(separator: " ")
      guard let at = words.firstIndex(of: "import"), at + 1 < words.count,
        words[..<at].allSatisfy({ $0.hasPrefix("@") || ["public", "package", "internal", "private"].contains($0) })
      else { return nil }
      // `import struct Module.Type` names the module before the dot.
      let last = words[words.count - 1]
      return String(last.split(separator: ".").first ?? last)
    }
  }

  /// Every target of `Package.swift` with what it depends on, read from the lines that declare them.
  static func targets() throws -> [String: Set<String>] {
    let text = Repository.package.lines.filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    var targets: [String: Set<String>] = ["CRE2": [], "CSimdjson": []]
    for match in text.matches(of: /(library|program|tests|debian)\(\s*"(\w+)"([^)]*)\)/) {
      let (_, kind, name, rest) = match.output
      let names = rest.replacing(/in: "\w+"/, with: "").matches(of: /"(\w+)"/).map { String($0.output.1) }
      targets[String(name)] = kind == "debian" ? [] : Set(names)
    }
    try #require(targets.count > 20, "Package.swift is no longer written as this test reads it")
    return targets
  }
}
