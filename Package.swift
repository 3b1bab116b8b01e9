// swift-tools-version: 6.2
import PackageDescription

// Dependencies point only down; `Tests/TidyTests` compares every `import` with this table.
// docs/internals/architecture.md has the map and its reasons.

let common: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// A module in `Sources/GROUP/NAME`, or in `Sources/NAME` if it is a group of its own.
func library(
  _ name: String, in group: String? = nil, _ dependencies: [Target.Dependency] = [], _ settings: [SwiftSetting] = []
) -> Target {
  .target(name: name, dependencies: dependencies, path: path(name, in: group), swiftSettings: common + settings)
}

/// For modules that handle each row of a scan or of a response, and for the transport, whose sessions and connections
/// keep their state in properties of objects and read them some fifty times for each request. A check of exclusive access
/// to a property takes as long as the work on a row, and all checks of a request a tenth of a point read. Debug builds,
/// and so all tests, keep the checks.
let unchecked: [SwiftSetting] = [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

func program(_ name: String, in group: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: path(name, in: group), swiftSettings: common)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: common)
}

/// A C library of a Debian package, in `Sources/C/NAME`.
func debian(_ name: String, pkgConfig: String? = nil, _ package: String) -> Target {
  .systemLibrary(name: name, path: path(name, in: "C"), pkgConfig: pkgConfig, providers: [.apt([package])])
}

func path(_ name: String, in group: String?) -> String {
  group.map { "Sources/\($0)/\(name)" } ?? "Sources/\(name)"
}

let package = Package(
  name: "hearth",
  // For HearthClient, which needs `URLSession.data(for:)`; the server runs on Linux.
  platforms: [.macOS(.v12), .iOS(.v15), .tvOS(.v15), .watchOS(.v8), .visionOS(.v1)],
  products: [
    .executable(name: "hearth", targets: ["hearth"]),
    .library(name: "HearthServer", targets: ["HearthServer"]),
    .library(name: "HearthClient", targets: ["HearthClient"]),
    .library(name: "HearthTesting", targets: ["HearthTesting"]),
  ],
  targets: [
    // C libraries from Debian, each imported by exactly one Swift target. There are two exceptions: libcrypto computes
    // the digests of `Digests`, and the keys and imported password hashes of `Accounts`; zlib computes the CRC-32 of
    // `Digests`, and the gzip of `Transport` and `Compression`.
    debian("CLMDB", pkgConfig: "lmdb", "liblmdb-dev"),
    debian("CUV", pkgConfig: "libuv", "libuv1-dev"),
    debian("CHTTPParser", "libhttp-parser-dev"),
    debian("CNGHTTP2", pkgConfig: "libnghttp2", "libnghttp2-dev"),
    debian("COpenSSL", pkgConfig: "openssl", "libssl-dev"),
    debian("CCrypto", pkgConfig: "libcrypto", "libssl-dev"),
    debian("CSodium", pkgConfig: "libsodium", "libsodium-dev"),
    debian("CXCrypt", "libcrypt-dev"),
    debian("CZlib", pkgConfig: "zlib", "zlib1g-dev"),
    debian("CZstd", pkgConfig: "libzstd", "libzstd-dev"),
    debian("CXXHash", pkgConfig: "libxxhash", "libxxhash-dev"),
    .systemLibrary(name: "CEpoll", path: path("CEpoll", in: "C")),
    .systemLibrary(name: "CTimex", path: path("CTimex", in: "C")),
    .systemLibrary(name: "CBeneath", path: path("CBeneath", in: "C")),
    .target(
      name: "CSimdjson",
      path: path("CSimdjson", in: "C"),
      cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-O3"])],
      linkerSettings: [.linkedLibrary("simdjson"), .linkedLibrary("stdc++")]),
    .target(
      name: "CRE2",
      path: path("CRE2", in: "C"),
      cxxSettings: [.unsafeFlags(["-O2"])],
      linkerSettings: [.linkedLibrary("re2"), .linkedLibrary("stdc++")]),
    // The files of the console, embedded by the C compiler.
    .target(name: "CConsole", path: path("CConsole", in: "C"), exclude: ["files"]),
    // Of the package libcurl4-openssl-dev. Not linked: the first request loads the library.
    .target(name: "CCurl", path: path("CCurl", in: "C")),
    // Of the package libpq-dev. Not linked: the first connection to PostgreSQL loads the library.
    .target(name: "CPostgres", path: path("CPostgres", in: "C")),
    // Of the package libstemmer0d. Not linked: the first search for a text loads the library.
    .target(name: "CStemmer", path: path("CStemmer", in: "C")),
    // Of the package libicu72 or a later one. Not linked: the first text to divide into words loads the library.
    .target(name: "CICU", path: path("CICU", in: "C")),

    // The model and its encodings.
    library("DocumentModel", in: "Model", ["Basics"]),
    library("WireFormat", in: "Wire", ["DocumentModel", "CSimdjson"]),
    library("FixtureTree", in: "Wire", ["DocumentModel", "WireFormat", "Compression", "Basics"]),
    library("Archives", in: "Wire", ["FixtureTree", "Digests"]),
    library("FirebaseExport", in: "Wire", ["FixtureTree", "WireFormat", "DocumentModel", "Digests"]),

    // Shared by several layers.
    library("Basics"),
    library("Digests", ["CCrypto", "CZlib"]),
    library("Compression", ["CZlib", "CZstd"]),
    library("RegularExpressions", ["CRE2"]),

    // The store.
    library("KeyValue", in: "Storage"),
    library("LMDBEngine", in: "Storage", ["KeyValue", "CLMDB"], unchecked),
    // The commit log in front of LMDB. It changes files only through a protocol of its own, which tests simulate.
    library("LogEngine", in: "Storage", ["LMDBEngine", "KeyValue", "CXXHash"], unchecked),
    library("SharedLog", in: "Storage", ["LogEngine", "KeyValue"]),
    library(
      "Replication", in: "Storage",
      ["SharedLog", "LogEngine", "LMDBEngine", "KeyValue", "Compression", "Digests", "Basics"]),
    // The content of files that all nodes of a cluster reach.
    library("ContentSharing", in: "Storage", ["Basics"]),
    library(
      "PostgresEngine", in: "Storage",
      ["SharedLog", "ContentSharing", "LogEngine", "KeyValue", "Digests", "Basics", "CPostgres"]),
    library("KeyEncoding", in: "Storage", ["WireFormat", "DocumentModel"]),
    library("TextAnalysis", in: "Storage", ["WireFormat", "DocumentModel", "CICU", "CStemmer"]),
    library("Matching", in: "Storage", ["KeyEncoding", "WireFormat", "DocumentModel"]),
    library(
      "DocumentStore", in: "Storage",
      ["KeyValue", "KeyEncoding", "Matching", "TextAnalysis", "WireFormat", "DocumentModel", "Basics", "CXXHash"]),
    library(
      "QueryEngine", in: "Query",
      ["DocumentStore", "KeyValue", "KeyEncoding", "Matching", "WireFormat", "DocumentModel", "Basics"], unchecked),
    // The expressions of pipelines. They read rows as borrowed bytes and do not depend on the store.
    library(
      "PipelineExpressions", in: "Query",
      ["KeyEncoding", "WireFormat", "DocumentModel", "RegularExpressions", "Basics"], unchecked),
    library(
      "PipelineEngine", in: "Query",
      [
        "PipelineExpressions", "QueryEngine", "DocumentStore", "KeyValue", "KeyEncoding", "WireFormat", "DocumentModel",
        "Basics", "TextAnalysis",
      ], unchecked),
    library(
      "Watch",
      ["Basics", "QueryEngine", "DocumentStore", "KeyValue", "KeyEncoding", "Matching", "WireFormat", "DocumentModel"]),
    library("Callers", in: "Services", ["RulesEngine"]),
    library(
      "DatabaseService", in: "Services",
      [
        "Callers", "RulesEngine", "Watch", "PipelineEngine", "QueryEngine", "DocumentStore", "KeyEncoding", "Matching",
        "KeyValue",
        "FirebaseExport", "FixtureTree", "WireFormat", "DocumentModel", "Basics",
      ], unchecked),

    // Security rules. The engine reads documents through a protocol of its own and does not depend on the store.
    library("RulesEngine", in: "Rules", ["WireFormat", "DocumentModel", "Digests", "RegularExpressions", "Basics"]),

    // Rule tests as data: cases evaluated in process, reports, mutation tests.
    library(
      "RulesTesting", in: "Rules", ["PipelineEngine", "RulesEngine", "FixtureTree", "WireFormat", "DocumentModel"]),

    // Accounts and files.
    library(
      "Accounts", in: "Services",
      ["KeyValue", "WireFormat", "DocumentModel", "Basics", "CCrypto", "CSodium", "CXCrypt"]),
    library("IdentityService", in: "Services", ["Accounts", "WireFormat", "DocumentModel", "Basics"]),
    library(
      "Files", in: "Services", ["ContentSharing", "KeyValue", "WireFormat", "DocumentModel", "Digests", "Basics"]),
    library(
      "Hosting", in: "Services", ["WireFormat", "Compression", "Digests", "Basics", "CBeneath", "CRE2"]),
    library(
      "FileService", in: "Services",
      ["Files", "ContentSharing", "DatabaseService", "Callers", "RulesEngine", "WireFormat", "DocumentModel"]),

    // HTTP and the APIs.
    library("WebClient", in: "HTTP", ["CCurl"]),
    library("Transport", in: "HTTP", ["Basics", "CUV", "CHTTPParser", "CNGHTTP2", "COpenSSL", "CZlib"], unchecked),
    library(
      "GatewayCore", in: "API",
      ["Transport", "Accounts", "DatabaseService", "Callers", "RulesEngine", "WireFormat", "DocumentModel", "Basics"]),
    library(
      "FirestoreAPI", in: "API",
      [
        "GatewayCore", "Transport", "Accounts", "DatabaseService", "RulesTesting", "RulesEngine", "Watch",
        "FileService",
        "Files", "WireFormat", "DocumentModel", "Basics",
      ], unchecked),
    library(
      "IdentityAPI", in: "API",
      [
        "GatewayCore", "Transport", "IdentityService", "Accounts", "DatabaseService", "WireFormat", "DocumentModel",
        "Basics",
      ]),
    library(
      "StorageAPI", in: "API",
      [
        "GatewayCore", "Transport", "Accounts", "FileService", "Files", "DatabaseService", "RulesEngine", "WireFormat",
        "DocumentModel", "Basics",
      ]),
    library(
      "OperationsAPI", in: "API",
      ["GatewayCore", "Transport", "Accounts", "DatabaseService", "WireFormat", "DocumentModel", "Basics"]),
    library(
      "HostingAPI", in: "API",
      ["GatewayCore", "Transport", "Hosting", "DatabaseService", "WireFormat", "Basics"]),
    library(
      "ConsoleAPI", in: "API",
      [
        "GatewayCore", "Transport", "Accounts", "DatabaseService", "RulesTesting", "RulesEngine", "FixtureTree",
        "WireFormat",
        "DocumentModel", "Compression", "Digests", "Basics", "CConsole",
      ]),
    library(
      "Gateway", in: "API",
      [
        "FirestoreAPI", "IdentityAPI", "StorageAPI", "OperationsAPI", "HostingAPI", "ConsoleAPI", "GatewayCore",
        "Transport", "IdentityService", "Accounts", "FileService", "Hosting", "DatabaseService", "Callers",
        "WireFormat", "DocumentModel", "Basics",
      ]),
    library(
      "HearthServer", in: "Server",
      [
        "Gateway", "GatewayCore", "ConsoleAPI", "OperationsAPI", "Transport", "IdentityService", "Accounts",
        "FileService", "Files", "ContentSharing",
        "Hosting", "DatabaseService", "Callers", "RulesTesting", "RulesEngine", "DocumentStore", "PostgresEngine",
        "Replication", "SharedLog", "LogEngine", "LMDBEngine", "KeyValue",
        "FixtureTree", "TextAnalysis",
        "WireFormat", "DocumentModel", "Basics",
      ]),

    // For apps: a client without dependencies, and a server inside the process of a test.
    library("HearthClient", in: "Client"),
    library("HearthTesting", in: "Server", ["HearthServer", "HearthClient"]),
    library(
      "HearthCLI", in: "CLI",
      [
        "CTimex", "HearthServer", "IdentityService", "Accounts", "Files", "ContentSharing", "Hosting", "Transport",
        "WebClient",
        "DatabaseService",
        "DocumentStore", "PostgresEngine", "Replication", "SharedLog", "LogEngine", "LMDBEngine", "Digests",
        "Compression",
        "KeyValue",
        "RulesTesting",
        "RulesEngine", "Archives", "FirebaseExport", "FixtureTree", "TextAnalysis", "WireFormat", "DocumentModel",
        "Basics",
      ]),

    program("hearth", in: "CLI", ["HearthCLI"]),
    program(
      "Benchmarks", in: "Tools",
      [
        "CEpoll", "HearthServer", "Accounts", "Files", "DatabaseService", "Callers", "Watch", "DocumentStore",
        "PostgresEngine", "Replication", "SharedLog", "LMDBEngine", "KeyValue",
        "RulesEngine", "WireFormat", "DocumentModel",
      ]),
    program(
      "Fuzzers", in: "Tools",
      [
        "DocumentStore", "LogEngine", "Archives", "FirebaseExport", "FixtureTree", "Hosting", "PipelineEngine",
        "PipelineExpressions",
        "RulesEngine", "Transport", "WireFormat", "DocumentModel",
      ]),

    // Tests mirror Sources.
    library(
      "TestSupport", in: "Tools", ["WebClient", "DocumentModel", "WireFormat", "Basics", "CNGHTTP2"]),
    tests("BasicsTests", ["Basics", "TestSupport"]),
    tests("DigestsTests", ["Digests", "Basics"]),
    tests("CompressionTests", ["Compression", "TestSupport"]),
    tests("DocumentModelTests", ["DocumentModel", "TestSupport"]),
    tests("WireFormatTests", ["WireFormat", "DocumentModel", "TestSupport"]),
    tests("FixtureTreeTests", ["FixtureTree", "Compression", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("ArchivesTests", ["Archives", "FixtureTree", "Compression", "TestSupport"]),
    tests("FirebaseExportTests", ["FirebaseExport", "FixtureTree", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("LMDBEngineTests", ["LogEngine", "LMDBEngine", "KeyValue", "TestSupport"]),
    library("ClusterTesting", in: "Tools", ["SharedLog", "LogEngine", "TestSupport"]),
    tests("SharedLogTests", ["ClusterTesting", "PostgresEngine", "SharedLog", "LogEngine", "TestSupport"]),
    tests(
      "ReplicationTests",
      [
        "ClusterTesting", "Replication", "PostgresEngine", "SharedLog", "LogEngine", "LMDBEngine", "KeyValue",
        "TestSupport",
      ]),
    tests(
      "DocumentStoreTests",
      [
        "DocumentStore", "KeyEncoding", "Matching", "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel", "Basics",
        "TestSupport",
      ]),
    tests("TextAnalysisTests", ["TextAnalysis", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("MatchingTests", ["KeyEncoding", "Matching", "WireFormat", "DocumentModel", "TestSupport"]),
    tests(
      "QueryEngineTests",
      [
        "QueryEngine", "DocumentStore", "LMDBEngine", "KeyValue", "KeyEncoding", "Matching", "WireFormat",
        "DocumentModel", "Basics", "TestSupport",
      ]),
    tests(
      "PipelineEngineTests",
      [
        "PipelineEngine", "QueryEngine", "DocumentStore", "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel",
        "Basics", "TestSupport",
      ]),
    tests(
      "PipelineExpressionsTests",
      ["PipelineExpressions", "KeyEncoding", "WireFormat", "DocumentModel", "Basics", "TestSupport"]),
    tests(
      "DatabaseServiceTests",
      [
        "DatabaseService", "QueryEngine", "Callers", "RulesEngine", "DocumentStore", "LMDBEngine", "KeyValue",
        "WireFormat", "DocumentModel", "Basics", "TestSupport",
      ]),
    tests(
      "WatchTests",
      [
        "Watch", "QueryEngine", "DocumentStore", "LMDBEngine", "KeyValue", "KeyEncoding", "Matching", "WireFormat",
        "DocumentModel", "TestSupport",
      ]),
    tests(
      "AccountsTests",
      ["Accounts", "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel", "TestSupport"]),
    tests(
      "IdentityServiceTests",
      ["IdentityService", "Accounts", "LMDBEngine", "KeyValue", "DocumentModel", "TestSupport"]),
    tests(
      "FileServiceTests",
      [
        "FileService", "Files", "ContentSharing", "DatabaseService", "Callers", "RulesEngine", "DocumentStore",
        "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel", "TestSupport",
      ]),
    tests("HostingTests", ["Hosting", "WireFormat", "TestSupport"]),
    tests("ContentSharingTests", ["ContentSharing", "PostgresEngine", "Digests", "TestSupport"]),
    tests(
      "FilesTests",
      [
        "Files", "ContentSharing", "Basics", "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel", "TestSupport",
      ]),
    tests(
      "RulesEngineTests", ["RulesEngine", "KeyEncoding", "Matching", "WireFormat", "DocumentModel", "TestSupport"]),
    tests(
      "RulesTestingTests", ["RulesTesting", "RulesEngine", "FixtureTree", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("WebClientTests", ["WebClient", "Transport", "TestSupport"]),
    tests("TransportTests", ["Transport", "Basics", "TestSupport"]),
    tests(
      "GatewayTests",
      [
        "HearthServer", "Gateway", "GatewayCore", "FirestoreAPI", "IdentityAPI", "StorageAPI", "OperationsAPI",
        "HostingAPI", "ConsoleAPI", "CConsole", "Hosting", "IdentityService", "Accounts", "FileService", "Files",
        "Transport", "DatabaseService", "Callers", "Watch",
        "RulesTesting", "RulesEngine", "FixtureTree", "DocumentStore", "WireFormat", "DocumentModel", "Basics",
        "TestSupport",
      ]),
    tests(
      "HearthCLITests",
      [
        "HearthCLI", "HearthServer", "ContentSharing", "IdentityService", "FirebaseExport", "FixtureTree",
        "PostgresEngine", "Replication", "SharedLog", "LogEngine", "LMDBEngine", "KeyValue",
        "DocumentModel",
        "TestSupport",
      ]),
    tests(
      "SimulationTests",
      [
        "DatabaseService", "Callers", "RulesEngine", "Watch", "QueryEngine", "DocumentStore", "Replication",
        "SharedLog", "LogEngine", "LMDBEngine", "KeyValue", "WireFormat", "DocumentModel", "Basics", "ClusterTesting",
        "TestSupport",
      ]),
    tests(
      "HearthServerTests",
      ["HearthServer", "DocumentModel", "DocumentStore", "LogEngine", "Replication", "Transport", "TestSupport"]),
    tests("HearthClientTests", ["HearthClient", "HearthTesting", "HearthServer", "TestSupport"]),
    tests("ConformanceTests", ["HearthClient", "TestSupport"], exclude: ["Systems/Python"]),
    tests("TidyTests", ["Benchmarks", "TestSupport"]),
  ],
  cxxLanguageStandard: .cxx17
)
