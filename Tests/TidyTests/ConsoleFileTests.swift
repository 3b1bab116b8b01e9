import Testing

/// The scripts of the console: which files are embedded, and rules that keep hostile text from becoming markup.
@Suite struct ConsoleFileTests {
  private static let folder = "Sources/C/CConsole"

  /// The embedded files, in the order of files.c.
  private static let embedded = Repository.text(of: "\(folder)/files.c").matches(of: /#embed "files\/([^"]+)"/)
    .map { String($0.output.1) }
  private static let scripts = embedded.filter { $0.hasSuffix(".js") }

  private static func lines(_ script: String) -> [Substring] {
    Repository.text(of: "\(folder)/files/\(script)").split(separator: "\n", omittingEmptySubsequences: false)
  }

  @Test func everyFileIsEmbedded() {
    let prefix = "\(Self.folder)/files/"
    let found = Repository.paths.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    #expect(Self.embedded.sorted() == found.sorted())
    let text = Repository.text(of: "\(Self.folder)/files.c")
    let table = text.matches(of: /\{"([^"]+)", (\w+), sizeof (\w+)\}/)
    #expect(table.map { String($0.output.1) } == Self.embedded)
    for row in table {
      let name = row.output.1.replacing(/[\/.-]/, with: "_")
      #expect(row.output.2 == name && row.output.3 == name)
    }
  }

  /// The server joins the scripts into one module, so their names are in one scope.
  @Test func namesAtTheTopAreUnique() {
    var owners: [String: String] = [:]
    for script in Self.scripts {
      for line in Self.lines(script) {
        guard let found = line.prefixMatch(of: /(?:export )?(?:async )?(?:const|let|function|class) (\w+)/) else {
          continue
        }
        let name = String(found.output.1)
        #expect(owners[name] == nil, "\(script) and \(owners[name] ?? "") declare \(name)")
        owners[name] = script
      }
    }
  }

  @Test func importsNameEarlierScripts() {
    var exports: [String: Set<String>] = [:]
    for script in Self.scripts {
      var names: Set<String> = []
      for line in Self.lines(script) {
        if let found = line.prefixMatch(of: /export (?:async )?(?:const|let|function|class) (\w+)/) {
          names.insert(String(found.output.1))
        }
        guard line.hasPrefix("import "), line.hasSuffix(".js\";") else { continue }
        guard let found = line.wholeMatch(of: /import \{ ([\w, ]+) \} from "(\.\.?\/[\w\/-]+\.js)";/) else {
          Issue.record("\(script): an import must be one line with names in braces: \(line)")
          continue
        }
        let target = Self.resolved(String(found.output.2), from: script)
        for name in found.output.1.split(separator: ", ") {
          #expect(
            exports[target]?.contains(String(name)) == true,
            "\(script) imports \(name), which \(target) does not export, or which is later in files.c")
        }
      }
      exports[script] = names
    }
  }

  private static func resolved(_ path: String, from script: String) -> String {
    var parts = script.split(separator: "/").dropLast().map(String.init)
    for part in path.split(separator: "/") {
      if part == ".." { parts.removeLast() } else if part != "." { parts.append(String(part)) }
    }
    return parts.joined(separator: "/")
  }

  /// Names and values of documents are hostile text. No script turns text into markup or code.
  @Test func noTextBecomesMarkup() {
    let sinks = [
      "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc",
      "createContextualFragment", "DOMParser", "setHTML", "javascript:", "document.cookie",
    ]
    for script in Self.scripts {
      for (index, line) in Self.lines(script).enumerated() {
        for sink in sinks { #expect(!line.contains(sink), "\(script):\(index + 1) uses \(sink)") }
      }
    }
    let page = Repository.text(of: "\(Self.folder)/files/index.html")
    #expect(!page.contains("style=") && page.firstMatch(of: /\son\w+=/) == nil)
  }

  @Test func nothingIsFetchedFromElsewhere() {
    for file in Self.embedded {
      for (index, line) in Self.lines(file).enumerated() where line.contains("://") {
        // These are names, which are not fetched: the namespace of drawings, and the path of a file.
        let rest = line.replacing("http://www.w3.org/2000/svg", with: "").replacing("gs://${", with: "")
        #expect(!rest.contains("://"), "\(file):\(index + 1): \(line)")
      }
    }
  }
}
