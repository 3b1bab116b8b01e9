import Foundation
import Testing

/// The page docs/reference/limits.md matches the constants that declare the limits. `make reference` rewrites the
/// page.
@Suite struct LimitsPageTests {
  /// The file with the defaults of the transport. The server sets other values for some of them.
  private static let configurationPath = "Sources/HTTP/Transport/Server/TransportConfiguration.swift"

  /// The files that declare limits, with the heading of their table.
  static let sources: [(heading: String, path: String)] = [
    ("Documents, queries and transactions", "Sources/Model/DocumentModel/Limits.swift"),
    ("Databases of an emulator", "Sources/Storage/DocumentStore/Catalog/BlankDatabases.swift"),
    ("Disk usage by collection", "Sources/Storage/DocumentStore/Maintenance/CollectionUseReport.swift"),
    ("Queries", "Sources/Query/QueryEngine/Planning/QueryError.swift"),
    ("Expressions of pipelines", "Sources/Query/PipelineExpressions/ExpressionLimits.swift"),
    ("Listeners", "Sources/Watch/WatchStream.swift"),
    ("Changes that wait for a listener", "Sources/Watch/Subscriber.swift"),
    ("Changes that wait for all listeners", "Sources/Watch/WatchedDocument.swift"),
    ("Commits", "Sources/Storage/DocumentStore/Commit/CommitQueue.swift"),
    ("Memory of commit logs", "Sources/Storage/LogEngine/Memory/MemtableBudget.swift"),
    ("Large commits", "Sources/Storage/DocumentStore/Commit/LargeCommits.swift"),
    ("Write streams", "Sources/Services/DatabaseService/Streams/WriteStream.swift"),
    ("WebChannel", "Sources/API/FirestoreAPI/WebChannel/ChannelTable.swift"),
    ("Messages of a WebChannel", "Sources/API/FirestoreAPI/WebChannel/ChannelForm.swift"),
    ("Security rules", "Sources/Rules/RulesEngine/Syntax/SourceText.swift"),
    ("Evaluation of rules", "Sources/Rules/RulesEngine/Evaluation/Evaluator/Evaluator.swift"),
    ("Recording of cases", "Sources/Rules/RulesTesting/Recording/RecordingLimits.swift"),
    ("Requests in the console", "Sources/API/ConsoleAPI/DecisionLog.swift"),
    ("Accounts", "Sources/Services/Accounts/Users/User.swift"),
    ("Wrong passwords", "Sources/Services/Accounts/Passwords/SignInThrottle.swift"),
    ("Known places of accounts", "Sources/Services/Accounts/Passwords/KnownPlaces.swift"),
    ("Tokens", "Sources/Services/Accounts/Tokens/TokenMinter.swift"),
    ("Fetched keys of issuers", "Sources/Server/HearthServer/OnlineIssuers.swift"),
    ("Codes for telephones", "Sources/Services/IdentityService/PhoneCodes.swift"),
    ("Sign-in at other providers", "Sources/Services/IdentityService/OpenID/ProviderLimits.swift"),
    ("Batches of accounts", "Sources/Services/IdentityService/BatchCreate.swift"),
    ("Requests per minute", "Sources/Services/DatabaseService/Limits/RateLimiter.swift"),
    ("Keys of programs", "Sources/Services/Accounts/Tokens/ServiceKeys.swift"),
    ("Buckets", "Sources/Services/Files/Objects/Bucket.swift"),
    ("Names of files", "Sources/Services/Files/Objects/ObjectName.swift"),
    ("Metadata of files", "Sources/Services/Files/Objects/StoredObject.swift"),
    ("Uploads", "Sources/Services/Files/Uploads/UploadRecord.swift"),
    ("Memory of uploads", "Sources/API/StorageAPI/UploadBody.swift"),
    ("Patterns of names", "Sources/Services/Files/Objects/NamePattern.swift"),
    ("Composed files", "Sources/Services/Files/Store/FileStore+Compose.swift"),
    ("Batches of requests for files", "Sources/API/StorageAPI/BatchReader.swift"),
    ("Hosting", "Sources/Services/Hosting/HostingLimits.swift"),
    ("Threads for work that waits", "Sources/Basics/WorkerLimits.swift"),
    ("Memory and temporary files of queries", "Sources/Basics/Scratch/ScratchLimits.swift"),
    ("Pipelines", "Sources/Query/PipelineEngine/PipelineLimits.swift"),
    ("Connections", configurationPath),
    ("Connections over the admin socket", "Sources/HTTP/Transport/Connection/AdminPeer.swift"),
    ("HTTP/2", "Sources/HTTP/Transport/HTTP2/HTTP2Limits.swift"),
    ("Connections between nodes of a cluster", "Sources/HTTP/Transport/Peers/PeerLimits.swift"),
    ("Turns of an event loop", "Sources/HTTP/Transport/Loop/LoopTime.swift"),
    ("JSON requests", "Sources/Wire/WireFormat/JSON/JSONDocument.swift"),
    ("Firebase exports", "Sources/Wire/FirebaseExport/ExportLimits.swift"),
    ("Archives", "Sources/Wire/Archives/ArchiveLimits.swift"),
    ("Copies over several connections", "Sources/CLI/HearthCLI/ServerExport/ConnectedWork.swift"),
    ("Index files", "Sources/Wire/FixtureTree/IndexFile/IndexFile.swift"),
    ("CSV files", "Sources/Wire/FixtureTree/Records/CSVLimits.swift"),
    ("Compressed files", "Sources/Compression/CompressionFormat.swift"),
  ]

  @Test func pageMatchesTheCode() throws {
    let path = "docs/reference/limits.md"
    let text = try Self.page()
    if ProcessInfo.processInfo.environment["REFERENCE_PAGES"] == "write",
      ProcessInfo.processInfo.environment["CI"] == nil
    {
      try text.write(toFile: "\(Repository.root)/\(path)", atomically: true, encoding: .utf8)
    }
    #expect(Repository.text(of: path) == text, "\(path) is stale; `make reference` rewrites it")
  }

  /// The parts of the memory that all clients together can fill, whatever they send. The mark for the process is 512
  /// MiB; the rest is for the allocator, for the pages that LMDB holds, and for the server itself. LMDB holds up to 70
  /// MiB of pages for a group of commits without a log. With one, these are about 4 MiB for a flush, and the tables take
  /// the difference.
  @Test func partsOfTheMemoryTogetherStayBelowTheMark() throws {
    let parts = [
      ("bufferedBytesMax", Self.configurationPath), ("unsentBytesMax", Self.configurationPath),
      ("heldBytesMax", "Sources/API/FirestoreAPI/WebChannel/ChannelTable.swift"),
      ("heldBytesMax", "Sources/API/StorageAPI/UploadBody.swift"),
      ("unfinishedBytesMax", "Sources/Storage/DocumentStore/Commit/CommitQueue.swift"),
      ("waitingBytesMax", "Sources/Watch/WatchedDocument.swift"),
      ("memoryBytesMax", "Sources/Basics/Scratch/ScratchLimits.swift"),
      ("pipelineBytesMax", "Sources/Basics/Scratch/ScratchLimits.swift"),
      ("cachedBytesMax", "Sources/Services/Hosting/HostingLimits.swift"),
      // Of the apps, and of the web SDK.
      ("knownBytesMax", "Sources/Services/Hosting/HostingLimits.swift"),
      ("knownBytesMax", "Sources/Services/Hosting/HostingLimits.swift"),
    ]
    func mebibytes(_ name: String, _ path: String) throws -> Int {
      let value = try #require(Self.limits(in: path).first { $0.name == name }?.value, "\(path) has no \(name)")
      return try #require(value.hasSuffix(" MiB") ? Int(value.dropLast(4)) : nil, "\(name) is \(value)")
    }
    let sizes = try parts.map { try mebibytes($0, $1) }
    // The last three parts are only used by servers with web apps.
    #expect(sizes.dropLast(3).reduce(0, +) <= 416 && sizes.reduce(0, +) <= 432)
    #expect(try mebibytes("tablesBytesMax", "Sources/Storage/LogEngine/Memory/MemtableBudget.swift") <= 70 - 4)
  }

  static func page() throws -> String {
    var text = """
      # Limits

      <!-- Generated from the code; `make reference` rewrites it. -->

      The limits that Hearth enforces, by the names they have in the code. A request beyond a limit of Cloud Firestore gets
      the error that Cloud Firestore returns. The sources that a row names are pages of this reference.

      """
    let serverValues = try serverValues()
    for (heading, path) in sources {
      var limits = limits(in: path)
      if path == configurationPath {
        for index in limits.indices { limits[index].value = serverValues[limits[index].name] ?? limits[index].value }
      }
      try #require(!limits.isEmpty, "\(path) declares no limit")
      text += "\n## \(heading)\n\n`\(path)`\n\n| limit | value | meaning |\n| --- | ---: | --- |\n"
      for limit in limits { text += "| `\(limit.name)` | \(limit.value) | \(limit.meaning) |\n" }
    }
    return text
  }

  /// The limits of the transport that `Server` sets, as the page shows them, by name.
  private static func serverValues() throws -> [String: String] {
    let gateway = limits(in: "Sources/API/Gateway/HTTPGateway.swift")
    var values: [String: String] = [:]
    // Four spaces: deeper assignments configure the address of the metrics.
    for line in Repository.text(of: "Sources/Server/HearthServer/Server.swift").split(separator: "\n") {
      guard let match = line.firstMatch(of: /^    transport\.(\w+(?:Max|Min|Seconds)) = (?:HTTPGateway\.(\w+)|(.+))$/)
      else { continue }
      let name = String(match.output.1)
      if let constant = match.output.2 {
        values[name] = try #require(gateway.first { $0.name == constant }?.value, "no value of \(line)")
      } else if let text = match.output.3 {
        var arithmetic = Arithmetic(text)
        let result = arithmetic.result()
        values[name] = shown(try #require(result, "no value of \(line)"), name)
      }
    }
    try #require(values.count >= 2, "Server.swift sets no limits")
    return values
  }

  /// The integer constants of a file that have a doc comment and a name with a unit or a limit in it.
  private static func limits(in path: String) -> [(name: String, value: String, meaning: String)] {
    let lines = Repository.text(of: path).split(separator: "\n", omittingEmptySubsequences: false)
    var limits: [(name: String, value: String, meaning: String)] = []
    for (index, line) in lines.enumerated() {
      let declaration =
        /^ +(?:package |public )?(?:static let|var) (\w+)(?:: Int(?:64|32)?)? = ([0-9][0-9_ <*()+-]*|\([0-9][0-9_ <*()+-]*)$/
      guard let match = line.firstMatch(of: declaration) else { continue }
      let name = String(match.output.1)
      guard name.contains(/(Max|Min|Seconds|Bytes|Default)/) else { continue }
      let comment = lines[..<index].reversed().prefix { $0.contains(/^ *\/\/\/ ?/) }.reversed()
        .map { $0.replacing(/^ *\/\/\/ ?/, with: "") }.joined(separator: " ")
      guard !comment.isEmpty else { continue }
      var value = Arithmetic(match.output.2)
      guard let result = value.result() else {
        Issue.record("\(path): cannot evaluate \(line)")
        continue
      }
      limits.append((name, shown(result, name), comment.replacing("``", with: "`")))
    }
    return limits
  }

  /// A number for readers: sizes that are whole KiB, MiB or GiB with that unit, other numbers with separators.
  private static func shown(_ number: Int, _ name: String) -> String {
    if name.contains("Bytes") || name.contains("bytes") {
      for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)]
      where number >= 1 << shift && number % (1 << shift) == 0 {
        return "\(number >> shift) \(unit)"
      }
    }
    let digits = Array(String(number))
    return String(
      digits.enumerated().flatMap {
        $0.offset > 0 && (digits.count - $0.offset).isMultiple(of: 3) ? [",", $0.element] : [$0.element]
      })
  }

  /// Evaluates an integer expression of literals, `+`, `-`, `*`, `<<` and parentheses with Swift's precedence.
  private struct Arithmetic {
    private var rest: Substring

    init(_ text: Substring) { rest = Substring(text.filter { $0 != " " && $0 != "_" }) }

    /// The value, or `nil` if the text is not such an expression.
    mutating func result() -> Int? {
      guard let value = sum(), rest.isEmpty else { return nil }
      return value
    }

    private mutating func sum() -> Int? {
      guard var value = product() else { return nil }
      while let sign = rest.first, sign == "+" || sign == "-" {
        rest.removeFirst()
        guard let next = product() else { return nil }
        value = sign == "+" ? value + next : value - next
      }
      return value
    }

    private mutating func product() -> Int? {
      guard var value = shift() else { return nil }
      while rest.first == "*" {
        rest.removeFirst()
        guard let next = shift() else { return nil }
        value *= next
      }
      return value
    }

    private mutating func shift() -> Int? {
      guard let value = atom() else { return nil }
      guard rest.hasPrefix("<<") else { return value }
      rest.removeFirst(2)
      return atom().map { value << $0 }
    }

    private mutating func atom() -> Int? {
      if rest.first == "(" {
        rest.removeFirst()
        guard let value = sum(), rest.first == ")" else { return nil }
        rest.removeFirst()
        return value
      }
      let digits = rest.prefix(while: \.isNumber)
      rest = rest.dropFirst(digits.count)
      return Int(digits)
    }
  }
}
