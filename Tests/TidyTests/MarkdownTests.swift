import Foundation
import Testing

/// Rules for the documentation.
@Suite struct MarkdownTests {
  @Test func everyFileHasOneTitle() {
    for path in Repository.paths where path.hasSuffix(".md") {
      let titles = Self.prose(of: path).filter { $0.hasPrefix("# ") }
      #expect(titles.count == 1, "\(path) has \(titles.count) titles")
    }
  }

  @Test func linksBetweenFilesResolve() {
    for path in Repository.paths where path.hasSuffix(".md") {
      let folder = path.split(separator: "/").dropLast().map { "\($0)/" }.joined()
      let anchors = Self.anchors(of: path)
      for match in Self.prose(of: path).joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/) {
        let link = match.output.1
        if link.contains("://") { continue }
        if link.hasPrefix("#") {
          #expect(anchors.contains(String(link.dropFirst())), "\(path) links to \(link), which no heading matches")
        } else {
          let target = Self.resolved(folder + (link.split(separator: "#").first ?? link))
          #expect(
            Repository.paths.contains { $0 == target || $0.hasPrefix(target.hasSuffix("/") ? target : target + "/") },
            "\(path) links to \(link), which does not exist")
          if let anchor = link.split(separator: "#").dropFirst().first, target.hasSuffix(".md") {
            #expect(
              Self.anchors(of: target).contains(String(anchor)), "\(path) links to \(link), which no heading matches")
          }
        }
      }
    }
  }

  @Test func architectureNamesEveryModule() throws {
    let page = Repository.text(of: "docs/internals/architecture.md")
    for target in try ImportTests.targets().keys where !target.hasSuffix("Tests") && !target.contains(/^C[A-Z]/) {
      #expect(page.contains(target), "docs/internals/architecture.md does not name the module \(target)")
    }
  }

  @Test func readmeIsAFrontPage() {
    let lines = Repository.text(of: "README.md").split(separator: "\n", omittingEmptySubsequences: false).count
    #expect(lines <= 200, "README.md has \(lines) lines, more than 200; move details to docs/")
  }

  @Test func pathsInArchitectureExist() {
    for path in Repository.paths where path.hasPrefix("docs/internals/") {
      for match in Repository.text(of: path).matches(of: /`((?:Sources|Tests)\/[\w\/+.-]+)`/) {
        let named = String(match.output.1)
        #expect(
          Repository.paths.contains { $0 == named || $0.hasPrefix(named.hasSuffix("/") ? named : named + "/") },
          "\(path) names \(named), which does not exist")
      }
    }
  }

  @Test func citedSectionsExist() {
    let citation = /([a-z-]+)\.md,? sections? (\d+(?:\.\d+)?[a-z]?(?:(?:, | and |,? to )\d+(?:\.\d+)?)*)/
    var count = 0
    for file in Repository.sources + Repository.tests {
      // A citation may continue on the next line of a comment.
      let text = file.lines.map { $0.replacing(/^\s*\/{2,3} ?/, with: "") }.joined(separator: " ")
      for match in text.matches(of: citation) {
        let path = "docs/reference/\(match.output.1).md"
        count += 1
        #expect(Repository.paths.contains(path), "\(file.path) cites \(match.output.1).md, not in docs/reference")
        for number in match.output.2.matches(of: /\d+(?:\.\d+)?/) {
          let heading = Self.prose(of: path).contains { $0.hasPrefix("#") && $0.contains(" \(number.output)") }
          #expect(heading, "\(file.path) cites section \(number.output) of \(path), which has no such heading")
        }
      }
    }
    #expect(count > 60, "found only \(count) citations; has their form changed?")
  }

  @Test func rulesPageCountsTheCases() throws {
    let files = Repository.paths.filter { $0.hasPrefix("rules/") }
    let suites = try files.filter { $0.hasSuffix(".tests.json") }.map { path in
      let suite = try JSONSerialization.jsonObject(with: Data(Repository.text(of: path).utf8)) as? [String: Any]
      return try #require(suite?["cases"] as? [Any], "\(path) has no cases").count
    }
    let sentence =
      "`rules/` holds \(files.count { $0.hasSuffix(".rules") }) rulesets with \(suites.reduce(0, +)) cases."
    #expect(Repository.text(of: "docs/rules.md").contains(sentence), "docs/rules.md does not say: \(sentence)")
  }

  @Test func makefileInstallsEveryLibraryOfThePackage() {
    let text = Repository.package.lines.joined(separator: "\n")
    let makefile = Repository.text(of: "Makefile")
    let packages = text.matches(of: /debian\(.*"([a-z0-9-]+)"\)/).map { String($0.output.1) }
    #expect(packages.count >= 5)
    for package in packages { #expect(makefile.contains(package), "make does not install \(package)") }
  }

  /// The path with `..` resolved.
  private static func resolved(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/", omittingEmptySubsequences: false) {
      if part == "..", !parts.isEmpty { parts.removeLast() } else { parts.append(part) }
    }
    return parts.joined(separator: "/")
  }

  /// The lines outside code blocks.
  static func prose(of path: String) -> [Substring] {
    var isCode = false
    return Repository.text(of: path).split(separator: "\n", omittingEmptySubsequences: false).filter { line in
      if line.hasPrefix("```") { isCode.toggle() }
      return !isCode
    }
  }

  /// The anchors of a file's headings, in the form that web hosts generate.
  private static func anchors(of path: String) -> Set<String> {
    Set(
      prose(of: path).filter { $0.hasPrefix("#") }.map { heading in
        heading.drop { $0 == "#" || $0 == " " }.lowercased()
          .filter { $0.isLetter || $0.isNumber || $0 == " " || $0 == "-" }
          .replacing(" ", with: "-")
      })
  }
}
