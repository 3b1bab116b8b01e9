package import DocumentModel
package import FixtureTree
import RulesEngine
import WireFormat

/// Reads test files, in Hearth's own format or in the JSON of the hosted service's test API.
package struct SuiteReader {
  private let rulesFile: String?
  /// The rules of every suite, in place of those that a test file contains or names. The reader then opens no files.
  private let rulesText: String?
  private let now: Timestamp

  /// A reader. `rulesFile` is for test files that do not name their rules, `now` for cases that do not specify a time.
  package init(rulesFile: String? = nil, now: Timestamp) {
    self.rulesFile = rulesFile
    rulesText = nil
    self.now = now
  }

  /// A reader of test files from a client. It tests `rules`, whatever rules the test file contains or names, and opens
  /// no files.
  package init(rules: String, now: Timestamp) {
    rulesFile = nil
    rulesText = rules
    self.now = now
  }

  /// Reads a file.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the file is malformed or cannot be read.
  package func read(file: String) throws(FixtureTreeError) -> RuleTestSuite {
    let bytes = try ByteSource(file: file).readAll(bytesMax: TestFileText.bytesMax)
    return try read(bytes, file: file)
  }

  /// Reads the contents of a file. Paths in it are relative to the directory of `file`.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the file is malformed or a file that it
  ///   names cannot be read.
  package func read(_ bytes: [UInt8], file: String) throws(FixtureTreeError) -> RuleTestSuite {
    let text = try TestFileText(file: file, bytes)
    if case .object(let members) = text.root.kind, members.contains(where: { $0.name == "testSuite" }) {
      return try HostedTestReader(text: text, now: now).suite(or: rulesFile, self)
    }
    let root = try text.members(
      text.root, "the file", known: ["rules", "time", "fixture", "documents", "files", "cases"])
    var suite = RuleTestSuite(
      file: file, rulesFile: file, rules: "", files: [file], documents: TestDocuments(), tests: [])
    try readRules(root["rules"], text, &suite)
    if let fixture = root["fixture"] {
      guard rulesText == nil else {
        throw text.failure(
          fixture, "\"fixture\" names a file, which cannot be read here; write the documents into \"documents\"")
      }
      let path = Self.path(try text.string(fixture, "\"fixture\""), beside: file)
      suite.files.append(path)
      var reader = try FixtureReader(ByteSource(file: path), database: TestFileText.database)
      while let document = try reader.next() { suite.documents[document.key.path] = document.fields }
    }
    if let documents = root["documents"] { try text.documents(documents, into: &suite.documents) }
    let time = try root["time"].map { (tree) throws(FixtureTreeError) in try text.time(tree) } ?? now
    let isOfFiles = suite.service == RuleTestSuite.filesService
    var files = isOfFiles ? RuleTestFiles() : nil
    if let tree = root["files"] {
      guard isOfFiles else {
        throw text.failure(tree, "\"files\" is allowed only with rules for \(RuleTestSuite.filesService)")
      }
      try files?.read(tree, text, time: time)
    }
    guard let cases = root["cases"] else {
      throw text.failure(text.root, "the file has no \"cases\"; add \"cases\": [{\"it\": …, \"get\": …, …}]")
    }
    let reader = CaseReader(text: text, time: time, files: files)
    for (index, element) in try text.elements(cases, "\"cases\"").enumerated() {
      suite.tests.append(try reader.test(element, number: index + 1))
    }
    return suite
  }

  /// Whether the rules of the reader replace those of test files.
  var hasOwnRules: Bool { rulesText != nil }

  func readRules(_ tree: JSONTree?, _ text: TestFileText, _ suite: inout RuleTestSuite) throws(FixtureTreeError) {
    if let rulesText {
      suite.rules = rulesText
      suite.rulesFile = "rules"
      return
    }
    if let tree {
      let rules = try text.string(tree, "\"rules\"")
      if rules.contains("{") {
        suite.rules = rules
        return
      }
      suite.rulesFile = Self.path(rules, beside: text.file)
    } else if let rulesFile {
      suite.rulesFile = rulesFile
    } else {
      throw text.failure(
        text.root, "the file does not name its rules; add \"rules\": \"firestore.rules\", or use --rules FILE")
    }
    suite.files.append(suite.rulesFile)
    let bytes = try ByteSource(file: suite.rulesFile).readAll(bytesMax: SourceText.bytesMax)
    suite.rules = String(decoding: bytes, as: UTF8.self)
  }

  /// Returns a path relative to the directory of another file.
  static func path(_ path: String, beside file: String) -> String {
    // Compare bytes, as the system does: a slash and a combining mark are one Character.
    let slash = UInt8(ascii: "/")
    guard path.utf8.first != slash, let end = file.utf8.lastIndex(of: slash) else { return path }
    return String(Substring(file.utf8[...end])) + path
  }
}

extension [String] {
  /// Returns `did you mean 'x'?`, or `nil` if no name is similar.
  func nearest(to name: String) -> String? { NearestName.hint(for: name, among: self) }
}
