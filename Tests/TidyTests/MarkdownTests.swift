import Foundation
import Testing

/// Habits of the documentation.
@Suite struct MarkdownTests {
  @Test func everyFileHasOneTitle() {
    for path in Repository.paths where path.hasSuffix(".md") {
      let titles = Self.prose(of: path).filter { $0.hasPrefix("# ") }
      #expect(titles.count == 1, "\(path) has \(titles.count) titles")
    }
  }

  @Test func linksBetweenFilesLead() {
    for path in Repository.paths where path.hasSuffix(".md") {
      let folder = path.split(separator: "/").dropLast().map { "\($0)/" }.joined()
      let anchors = Self.anchors(of: path)
      for match in Self.prose(of: path).joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/) {
        let link = match.output.1
        if link.contains("://") { continue }
        if link.hasPrefix("#") {
          #expect(anchors.contains(String(link.dropFirst())), "\(path) links to \(link), which no heading has")
        } else {
          let target = Self.resolved(folder + (link.split(separator: "#").first ?? link))
          #expect(
            Repository.paths.contains { $0 == target || $0.hasPrefix(target.hasSuffix("/") ? target : target + "/") },
            "\(path) links to \(link), which is not there")
          if let anchor = link.split(separator: "#").dropFirst().first, target.hasSuffix(".md") {
            #expect(Self.anchors(of: target).contains(String(anchor)), "\(path) links to \(link), which no heading has")
          }
        }
      }
    }
  }

  @Test func readmeNamesEveryModule() throws {
    let readme = Repository.text(of: "README.md")
    for target in try ImportTests.targets().keys where !target.hasSuffix("Tests") && !target.hasPrefix("C") {
      #expect(readme.contains(target), "README.md, \"Map of the modules\", does not name \(target)")
    }
  }

  @Test func readmeCountsTheCasesOfRules() throws {
    let files = Repository.paths.filter { $0.hasPrefix("rules/") }
    let suites = try files.filter { $0.hasSuffix(".tests.json") }.map { path in
      let suite = try JSONSerialization.jsonObject(with: Data(Repository.text(of: path).utf8)) as? [String: Any]
      return try #require(suite?["cases"] as? [Any], "\(path) has no cases").count
    }
    let sentence =
      "`rules/` holds \(files.count { $0.hasSuffix(".rules") }) rulesets with \(suites.reduce(0, +)) cases."
    #expect(Repository.text(of: "README.md").contains(sentence), "README.md does not say: \(sentence)")
  }

  @Test func makefileInstallsEveryLibraryOfThePackage() {
    let text = Repository.package.lines.joined(separator: "\n")
    let makefile = Repository.text(of: "Makefile")
    let packages = text.matches(of: /debian\(.*"([a-z0-9-]+)"\)/).map { String($0.output.1) }
    #expect(packages.count >= 5)
    for package in packages { #expect(makefile.contains(package), "make does not install \(package)") }
  }

  /// A path without `..`.
  private static func resolved(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/", omittingEmptySubsequences: false) {
      if part == "..", !parts.isEmpty { parts.removeLast() } else { parts.append(part) }
    }
    return parts.joined(separator: "/")
  }

  /// The lines outside of code blocks.
  private static func prose(of path: String) -> [Substring] {
    var isCode = false
    return Repository.text(of: path).split(separator: "\n", omittingEmptySubsequences: false).filter { line in
      if line.hasPrefix("```") { isCode.toggle() }
      return !isCode
    }
  }

  /// The anchors of a file's headings, as web hosts make them.
  private static func anchors(of path: String) -> Set<String> {
    Set(
      prose(of: path).filter { $0.hasPrefix("#") }.map { heading in
        heading.drop { $0 == "#" || $0 == " " }.lowercased()
          .filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }
          .replacing(" ", with: "-")
      })
  }
}
