import Testing

/// Modules depend only on modules of lower layers, and a source file imports only what `Package.swift` declares.
@Suite struct ImportTests {
  /// The modules by layer, from the lowest. A module may depend only on modules of earlier rows.
  static let layers: [Set<String>] = [
    [
      "CBeneath", "CConsole", "CCrypto", "CCurl", "CEpoll", "CHTTPParser", "CLMDB", "CNGHTTP2", "COpenSSL", "CRE2",
      "CICU", "CPostgres", "CSimdjson", "CSodium", "CStemmer",
      "CTimex", "CUV", "CXCrypt", "CXXHash", "CZlib", "CZstd",
    ],
    ["Basics", "Compression", "Digests", "RegularExpressions"],
    ["ContentSharing", "DocumentModel", "KeyValue", "Transport", "WebClient"],
    ["LMDBEngine", "WireFormat"],
    [
      "Accounts", "Files", "FixtureTree", "HearthClient", "Hosting", "KeyEncoding", "LogEngine", "RulesEngine",
      "TextAnalysis",
    ],
    ["Archives", "Callers", "FirebaseExport", "IdentityService", "Matching", "PipelineExpressions", "SharedLog"],
    ["DocumentStore", "PostgresEngine", "Replication"],
    ["QueryEngine"],
    ["PipelineEngine", "Watch"],
    ["DatabaseService", "RulesTesting"],
    ["FileService", "GatewayCore"],
    ["ConsoleAPI", "FirestoreAPI", "HostingAPI", "IdentityAPI", "OperationsAPI", "StorageAPI"],
    ["Gateway"],
    ["HearthServer"],
    ["HearthTesting", "TestSupport"],
    ["Benchmarks", "ClusterTesting", "Fuzzers", "HearthCLI"],
    ["hearth"],
  ]

  /// The targets that may import a module, for modules that not every higher layer may import. The reasons are in
  /// docs/internals/architecture.md.
  static let importers: [String: Set<String>] = [
    // The server chooses the storage engine; other modules use the protocols of KeyValue. The command line checks and
    // copies database files without a server.
    "LMDBEngine": ["LogEngine", "Replication", "HearthServer", "HearthCLI", "Benchmarks"],
    "LogEngine": [
      "SharedLog", "PostgresEngine", "Replication", "ClusterTesting", "HearthServer", "HearthCLI", "Benchmarks",
      "Fuzzers",
    ],
    // Handlers of the API read documents only through the service, which authorizes each read.
    "DocumentStore": [
      "QueryEngine", "PipelineEngine", "Watch", "DatabaseService", "HearthServer", "HearthCLI", "Benchmarks", "Fuzzers",
    ],
    "QueryEngine": ["PipelineEngine", "Watch", "DatabaseService"],
    "PipelineEngine": ["DatabaseService", "Fuzzers", "RulesTesting"],
    // Handlers receive their caller from authentication and cannot create one.
    "Callers": ["DatabaseService", "FileService", "GatewayCore", "Gateway", "HearthServer", "Benchmarks"],
    "KeyValue": [
      "LMDBEngine", "LogEngine", "SharedLog", "Replication", "PostgresEngine", "DocumentStore", "QueryEngine",
      "PipelineEngine", "Watch",
      "DatabaseService", "Accounts", "Files",
      "HearthServer",
      "HearthCLI", "Benchmarks",
    ],
    // Only the server and tools that measure or fuzz it use sockets.
    "Transport": [
      "GatewayCore", "ConsoleAPI", "FirestoreAPI", "HostingAPI", "IdentityAPI", "OperationsAPI", "StorageAPI",
      "Gateway",
      "HearthServer", "HearthCLI", "Benchmarks", "Fuzzers",
    ],
    // The server never makes HTTP requests. Its own process must not load libcurl.
    "WebClient": ["HearthCLI", "TestSupport"], "CCurl": ["WebClient"],
    // Each C library has one Swift module that wraps it.
    "CHTTPParser": ["Transport"], "CLMDB": ["LMDBEngine"], "CNGHTTP2": ["Transport", "TestSupport"],
    "COpenSSL": ["Transport"],
    // Rules, pipelines and the patterns of hosting have regular expressions.
    "CRE2": ["Hosting", "RegularExpressions"], "CBeneath": ["Hosting"], "CConsole": ["ConsoleAPI"],
    "CICU": ["TextAnalysis"], "CStemmer": ["TextAnalysis"], "CSimdjson": ["WireFormat"], "CUV": ["Transport"],
    // Benchmarks hold thousands of connections on one thread. The server does not use this module.
    "CEpoll": ["Benchmarks"],
    // `hearth doctor` asks the kernel whether the clock is synchronized.
    "CTimex": ["HearthCLI"],
    "CXXHash": ["DocumentStore", "LogEngine"], "CSodium": ["Accounts"], "CXCrypt": ["Accounts"],
    "CPostgres": ["PostgresEngine"],
    // Services see a cluster only through the storage engine that the server gives them.
    "PostgresEngine": ["HearthServer", "HearthCLI", "Benchmarks"],
    // All checksums come from Digests. Accounts needs libcrypto's keys and password hashes. Transport compresses
    // bodies of requests and responses with zlib, and Compression files.
    "CCrypto": ["Accounts", "Digests"], "CZlib": ["Transport", "Digests", "Compression"],
    "CZstd": ["Compression"],
    // Other modules reach the handlers of the API through the server.
    "Gateway": ["HearthServer"],
    "TestSupport": ["Benchmarks", "ClusterTesting", "Fuzzers"],
    // The client depends on no other module, so that it builds for phones, which the server does not support.
    "HearthClient": ["HearthTesting"],
  ]

  /// Modules of the toolchain.
  static let systemModules: Set<String> = ["Dispatch", "Glibc", "Synchronization"]
  static let foundationModules: Set<String> = ["Foundation", "FoundationEssentials", "FoundationNetworking"]

  /// The targets that may import Foundation. Other libraries must not: it costs start-up time and memory, and its
  /// types allocate.
  static let foundationImporters: Set<String> = [
    "Benchmarks", "ClusterTesting", "Fuzzers", "HearthClient", "HearthTesting", "TestSupport",
  ]

  @Test func packageDependenciesPointDown() throws {
    let targets = try Self.targets()
    for (target, dependencies) in targets where !target.hasSuffix("Tests") {
      guard let layer = Self.layers.firstIndex(where: { $0.contains(target) }) else {
        Issue.record("\(target) is in no layer; add it to ImportTests.layers")
        continue
      }
      for dependency in dependencies {
        let below = Self.layers[..<layer].contains { $0.contains(dependency) }
        #expect(below, "\(target) must not depend on \(dependency), which is not in a lower layer")
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
        } else if module == "Testing" {
          #expect(file.target == "TestSupport", "\(file.path) must not import \(module)")
        } else if !Self.systemModules.contains(module) {
          #expect(declared.contains(module), "\(file.path) imports \(module), which Package.swift does not declare")
        }
      }
    }
  }

  /// The modules that a file imports, with any attributes and access level.
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

  /// Every target of `Package.swift` with its dependencies, parsed from the declarations.
  static func targets() throws -> [String: Set<String>] {
    let text = Repository.package.lines.filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
    var targets: [String: Set<String>] = ["CConsole": [], "CCurl": [], "CRE2": [], "CSimdjson": []]
    for match in text.matches(of: /(library|program|tests|debian)\(\s*"(\w+)"([^)]*)\)/) {
      let (_, kind, name, rest) = match.output
      let names = rest.replacing(/in: "\w+"/, with: "").matches(of: /"(\w+)"/).map { String($0.output.1) }
      targets[String(name)] = kind == "debian" ? [] : Set(names)
    }
    try #require(targets.count > 20, "too few targets; this test cannot parse Package.swift")
    return targets
  }
}
