import Foundation
import Testing
import TestSupport

/// `hearth stats --collections`, of a directory and of a server.
@Suite(.needs(.hearth)) struct CollectionsReportTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDataDirectory("d")
  }

  private func run(_ words: [String]) throws -> String {
    let (exit, output) = try HearthBinary.run(words)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  private static let tree = """
    {"$collections": ["a", "a/*/b", "c"],
     "a": {"1": {"x": 1, "b": {"2": {"y": 2}}}, "3": {"x": 1, "b": {"4": {}}}}, "c": {"5": {}}}
    """

  @Test func directoryAndServerReportTheSameCollections() throws {
    let file = try directory.write("tree.json", Self.tree)
    _ = try run(["import", file, "--data", directory.file("d"), "--project", "demo"])
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let place = ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]
    _ = try run(["import", file] + place)
    for words in [[], ["--by", "path"], ["--by", "group", "--depth", "1"], ["a/1", "--by", "path"]] {
      let stored = try run(["stats"] + words + ["--collections", "--json", "--data", directory.file("d")])
      let served = try run(["stats"] + words + ["--collections", "--json"] + place)
      #expect(stored == served, "\(words)")
    }
    let table = try run(["stats", "--collections", "--data", directory.file("d")])
    let lines = table.split(separator: "\n").map { $0.split(separator: " ", omittingEmptySubsequences: true) }
    #expect(lines[0].first == "demo/(default)" && lines[0].last == "share")
    #expect(Set(lines.dropFirst().map { "\($0[0]) \($0[1])" }) == ["a 2", "a/*/b 2", "c 1"], "\(table)")
    #expect(lines.dropFirst().allSatisfy { $0.last?.hasSuffix("%") == true })
    let nothing = try run(["stats", "zzz", "--collections", "--data", directory.file("d")])
    #expect(nothing == "no collections in demo/(default)\n")
  }

  @Test func statisticsContainAccounts() throws {
    let place = ["--data", directory.file("d"), "--project", "demo"]
    _ = try run(["accounts", "create", "--email", "ann@example.com"] + place)
    #expect(try run(["stats", "--data", directory.file("d")]).contains("accounts of demo: 1 account, "))
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let url = "http://127.0.0.1:\(server.port)"
    _ = try run(["accounts", "create", "--email", "ann@example.com", "--server", url, "--project", "demo"])
    #expect(try run(["stats", "--server", url]).contains("1 account, "))
  }

  @Test(arguments: [["--by", "path"], ["--depth", "1"], ["users"]])
  func optionsOfCollectionsNeedTheFlag(words: [String]) throws {
    let (exit, output) = try HearthBinary.run(["stats"] + words + ["--data", directory.path])
    #expect(exit == .code(64) && output.contains("--collections"), "\(output)")
  }
}
