// swift-tools-version: 6.2
import PackageDescription

// Arrows point only down; `Tests/TidyTests` compares every `import` with this table.
// The map and its reasons are in README.md, "Map of the modules".

let common: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: common)
}

func program(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .executableTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: common)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: common)
}

func debian(_ name: String, pkgConfig: String? = nil, _ package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
  name: "hearth",
  // For HearthClient; the server runs on Linux.
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .executable(name: "hearth", targets: ["hearth"]),
    .library(name: "HearthServer", targets: ["HearthServer"]),
    .library(name: "HearthClient", targets: ["HearthClient"]),
    .library(name: "HearthTesting", targets: ["HearthTesting"]),
  ],
  targets: [
    // C libraries from Debian, each imported by exactly one Swift target.
    debian("CLMDB", pkgConfig: "lmdb", "liblmdb-dev"),
    debian("CUV", pkgConfig: "libuv", "libuv1-dev"),
    debian("CHTTPParser", "libhttp-parser-dev"),
    debian("CNGHTTP2", pkgConfig: "libnghttp2", "libnghttp2-dev"),
    debian("COpenSSL", pkgConfig: "openssl", "libssl-dev"),
    debian("CCrypto", pkgConfig: "libcrypto", "libssl-dev"),
    debian("CSodium", pkgConfig: "libsodium", "libsodium-dev"),
    debian("CXCrypt", "libcrypt-dev"),
    debian("CZlib", pkgConfig: "zlib", "zlib1g-dev"),
    debian("CXXHash", pkgConfig: "libxxhash", "libxxhash-dev"),
    .systemLibrary(name: "CEpoll"),
    .systemLibrary(name: "CTimex"),
    .target(
      name: "CSimdjson",
      cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-O3"])],
      linkerSettings: [.linkedLibrary("simdjson"), .linkedLibrary("stdc++")]),
    .target(
      name: "CRE2",
      cxxSettings: [.unsafeFlags(["-O2"])],
      linkerSettings: [.linkedLibrary("re2"), .linkedLibrary("stdc++")]),

    // The nouns and the wire.
    library("DocumentModel"),
    library("WireFormat", ["DocumentModel", "CSimdjson"]),
    library("FixtureTree", ["DocumentModel", "WireFormat"]),

    // What counters of several layers share.
    library("Metrics"),

    // The store.
    library("KeyValueStore"),
    library("LMDBStore", ["KeyValueStore", "CLMDB"]),
    library("FieldMatch", ["WireFormat", "DocumentModel"]),
    library("DocumentStore", ["KeyValueStore", "FieldMatch", "WireFormat", "DocumentModel", "Metrics", "CXXHash"]),
    library("QueryEngine", ["DocumentStore", "KeyValueStore", "FieldMatch", "WireFormat", "DocumentModel"]),
    library(
      "ChangeFeed",
      ["QueryEngine", "DocumentStore", "KeyValueStore", "FieldMatch", "WireFormat", "DocumentModel"]),
    library(
      "DatabaseService",
      [
        "RulesEngine", "ChangeFeed", "QueryEngine", "DocumentStore", "FieldMatch", "KeyValueStore", "FixtureTree",
        "WireFormat",
        "DocumentModel",
      ]),

    // The judge: security rules. It knows no store; it asks for documents through a protocol of its own.
    library("RulesEngine", ["WireFormat", "DocumentModel", "CRE2"]),

    // Rule tests as data: cases judged in process, reports, mutation tests.
    library("RulesTesting", ["RulesEngine", "FixtureTree", "WireFormat", "DocumentModel"]),

    // Beside the documents: who people are, and their files.
    library("Accounts", ["KeyValueStore", "WireFormat", "DocumentModel", "CCrypto", "CSodium", "CXCrypt"]),
    library("Files", ["KeyValueStore", "WireFormat", "DocumentModel", "CCrypto", "CZlib"]),

    // The front.
    library("Transport", ["Metrics", "CUV", "CHTTPParser", "CNGHTTP2", "COpenSSL", "CZlib"]),
    library(
      "Gateway",
      [
        "Transport", "Accounts", "Files", "DatabaseService", "RulesTesting", "RulesEngine", "ChangeFeed", "QueryEngine",
        "DocumentStore",
        "WireFormat", "DocumentModel", "Metrics",
      ]),
    library(
      "HearthServer",
      [
        "Gateway", "Transport", "Accounts", "Files", "DatabaseService", "RulesEngine", "DocumentStore", "LMDBStore",
        "KeyValueStore",
        "FixtureTree", "WireFormat", "DocumentModel",
      ]),

    // For apps: the client, which stands alone, and a server in the process of an app's own tests.
    library("HearthClient"),
    library("HearthTesting", ["HearthServer", "HearthClient"]),
    program(
      "hearth",
      [
        "CTimex", "HearthServer", "Accounts", "Files", "Transport", "DatabaseService", "DocumentStore", "LMDBStore",
        "KeyValueStore",
        "RulesTesting",
        "RulesEngine", "FixtureTree", "WireFormat", "DocumentModel",
      ]),
    program(
      "Benchmarks",
      [
        "CEpoll", "HearthServer", "Accounts", "Files", "DatabaseService", "ChangeFeed", "DocumentStore", "LMDBStore",
        "KeyValueStore",
        "RulesEngine", "WireFormat", "DocumentModel",
      ]),
    program("Fuzzers", ["DocumentStore", "FixtureTree", "RulesEngine", "Transport", "WireFormat", "DocumentModel"]),

    // Tests mirror Sources.
    library(
      "TestSupport",
      ["DocumentModel", "WireFormat"]),
    tests("DocumentModelTests", ["DocumentModel", "TestSupport"]),
    tests("WireFormatTests", ["WireFormat", "DocumentModel", "TestSupport"]),
    tests("FixtureTreeTests", ["FixtureTree", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("LMDBStoreTests", ["LMDBStore", "KeyValueStore", "TestSupport"]),
    tests(
      "DocumentStoreTests",
      ["DocumentStore", "FieldMatch", "LMDBStore", "KeyValueStore", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("FieldMatchTests", ["FieldMatch", "WireFormat", "DocumentModel", "TestSupport"]),
    tests(
      "QueryEngineTests",
      [
        "QueryEngine", "DocumentStore", "LMDBStore", "KeyValueStore", "FieldMatch", "WireFormat", "DocumentModel",
        "TestSupport",
      ]),
    tests(
      "ChangeFeedTests",
      [
        "ChangeFeed", "QueryEngine", "DocumentStore", "LMDBStore", "KeyValueStore", "FieldMatch", "WireFormat",
        "DocumentModel", "TestSupport",
      ]),
    tests(
      "AccountsTests",
      ["Accounts", "LMDBStore", "KeyValueStore", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("FilesTests", ["Files", "LMDBStore", "KeyValueStore", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("RulesEngineTests", ["RulesEngine", "FieldMatch", "WireFormat", "DocumentModel", "TestSupport"]),
    tests(
      "RulesTestingTests", ["RulesTesting", "RulesEngine", "FixtureTree", "WireFormat", "DocumentModel", "TestSupport"]),
    tests("TransportTests", ["Transport", "Metrics", "CNGHTTP2", "TestSupport"]),
    tests(
      "GatewayTests",
      [
        "HearthServer", "Gateway", "Accounts", "Files", "Transport", "CNGHTTP2", "DatabaseService", "ChangeFeed",
        "FixtureTree", "DocumentStore", "WireFormat", "DocumentModel", "TestSupport",
      ]),
    tests(
      "HearthTests", ["hearth", "LMDBStore", "KeyValueStore", "DocumentModel", "TestSupport"]),
    tests(
      "SimulationTests",
      [
        "DatabaseService", "RulesEngine", "ChangeFeed", "QueryEngine", "DocumentStore", "LMDBStore", "KeyValueStore",
        "WireFormat", "DocumentModel", "TestSupport",
      ]),
    tests("HearthServerTests", ["HearthServer", "DocumentModel", "TestSupport"]),
    tests("HearthClientTests", ["HearthClient", "HearthTesting", "HearthServer", "TestSupport"]),
    tests("ConformanceTests", ["HearthClient", "TestSupport"], exclude: ["Systems/Python"]),
    tests("TidyTests", ["Benchmarks"]),
  ],
  cxxLanguageStandard: .cxx17
)
