import DocumentModel
import FixtureTree
package import RulesEngine
import WireFormat

/// A recorded case, apart from the other cases of its file.
struct RecordedCase: Sendable {
  /// The name. Other cases can have the same one.
  let name: String
  /// The members of the case except its name and its documents, in order.
  let members: [CaseWriter.Member]
  /// The documents that the evaluation read.
  let documents: TestDocuments.Changes
  /// Whether the decision or the written documents depend on the time.
  let usesTime: Bool
  /// The whole case as text. Equal cases have equal texts.
  let text: [UInt8]
  /// The paths of the request, by which cases are sorted.
  let place: String

  init(
    name: String, members: [CaseWriter.Member], documents: TestDocuments.Changes, usesTime: Bool, _ test: RuleTest
  ) {
    self.name = name
    self.members = members
    self.documents = documents
    self.usesTime = usesTime
    let documents = try? RecordedSuite.writer.documents(documents)
    text = Array((CaseWriter.object(members) + (documents?.text ?? "")).utf8)
    place =
      switch test.operation {
      case .get(let key): key.path.text
      case .list(let query): query.parent.appending(query.collectionID ?? "").text
      case .pipeline(let pipeline): pipeline.text
      case .commit(let writes): writes.first?.key.path.text ?? ""
      case .hosted(let request, _): request.path.text
      case .file(let request): request.path
      }
  }

  static func isOrdered(_ a: RecordedCase, _ b: RecordedCase) -> Bool {
    for (a, b) in [(a.place, b.place), (a.name, b.name)] where !a.utf8.elementsEqual(b.utf8) {
      return a.utf8.lexicographicallyPrecedes(b.utf8)
    }
    return a.text.lexicographicallyPrecedes(b.text)
  }
}

/// The recorded cases of one ruleset.
package struct RecordedSuite: Sendable {
  package let ruleset: Ruleset
  /// The cases by ``RecordedCase/text``.
  var cases: [[UInt8]: RecordedCase] = [:]

  /// Writes values that ``CaseReader`` has read.
  static let writer = CaseWriter(database: TestFileText.database, rules: [])
  /// The preferred length of a line, in bytes.
  private static let lineBytesMax = 120

  init(ruleset: Ruleset) { self.ruleset = ruleset }

  /// The number of cases.
  package var count: Int { cases.count }

  /// Removes the cases that do not reproduce their decisions when the whole file is read.
  mutating func verify(_ outcome: inout RecordingOutcome) {
    let ordered = ordered
    let text = text(rules: String(decoding: ruleset.source.bytes, as: UTF8.self), ordered)
    let suite: RuleTestSuite
    do throws(FixtureTreeError) {
      suite = try SuiteReader(now: CaseRecording.standardTime).read(text, file: "the recorded cases")
    } catch {
      for recorded in ordered { outcome.note("the file cannot be read: \(error.message)", example: recorded.name) }
      return cases.removeAll()
    }
    var coverage: Coverage?
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    for (recorded, result) in zip(ordered, run.results) where !result.isPassed {
      outcome.note("the decision differs next to the other cases", example: recorded.name)
      cases[recorded.text] = nil
    }
  }

  /// Returns the test file. `rules` is the path of the rules relative to the file, or their text.
  package func text(rules: String) -> [UInt8] { text(rules: rules, ordered) }

  private var ordered: [RecordedCase] { cases.values.sorted(by: RecordedCase.isOrdered) }

  private func text(rules: String, _ ordered: [RecordedCase]) -> [UInt8] {
    let shared = Self.shared(ordered)
    var text = "{\n  \"rules\": \(CaseWriter.quoted(rules)),\n"
    if ordered.contains(where: \.usesTime) {
      var time: [UInt8] = []
      CaseRecording.standardTime.appendRFC3339(to: &time)
      text += "  \"time\": \(CaseWriter.quoted(String(decoding: time, as: UTF8.self))),\n"
    }
    if !shared.isEmpty { text += "  \"documents\": \(Self.tree(shared)),\n" }
    text += "  \"cases\": [\n"
    var names: [String: Int] = [:]
    for (index, recorded) in ordered.enumerated() {
      let number = (names[recorded.name] ?? 0) + 1
      names[recorded.name] = number
      let name = number == 1 ? recorded.name : "\(recorded.name) (\(number))"
      text += Self.lines(recorded, named: name, over: shared)
      text += index + 1 < ordered.count ? ",\n" : "\n"
    }
    return Array((text + "  ]\n}\n").utf8)
  }

  /// Returns the documents that several cases read in the same state. Of several such states of a document, the most
  /// frequent one is chosen.
  private static func shared(_ cases: [RecordedCase]) -> [ResourcePath: EncodedFields] {
    var states: [ResourcePath: [EncodedFields: Int]] = [:]
    for recorded in cases {
      for case (let path, let fields?) in recorded.documents { states[path, default: [:]][fields, default: 0] += 1 }
    }
    return states.compactMapValues { states in
      let most = states.max { a, b in
        a.value != b.value ? a.value < b.value : b.key.bytes.lexicographicallyPrecedes(a.key.bytes)
      }
      return most.flatMap { $0.value > 1 ? $0.key : nil }
    }
  }

  /// Returns documents as a fixture tree, indented as a member of the file.
  private static func tree(_ documents: [ResourcePath: EncodedFields]) -> String {
    let keys = documents.keys.map { DocumentKey(uncheckedPath: $0) }.sorted()
    do {
      var tree = try FixtureTreeWriter(
        database: TestFileText.database, patterns: CollectionShape.patterns(of: keys.map(\.collection)))
      for key in keys { if let fields = documents[key.path] { try tree.write(key, fields) } }
      try tree.finish()
      let lines = String(decoding: tree.takeOutput(), as: UTF8.self).split(separator: "\n")
      return lines.joined(separator: "\n  ")
    } catch {
      // Without these documents, the cases that need them fail to verify and are reported.
      return "{\"$collections\": []}"
    }
  }

  /// Returns a case: on one line if it fits, else on several.
  private static func lines(
    _ recorded: RecordedCase, named name: String, over shared: [ResourcePath: EncodedFields]
  ) -> String {
    var members: [CaseWriter.Member] = [("it", CaseWriter.quoted(name))] + recorded.members
    let own = recorded.documents.filter { path, fields in fields != shared[path] }
    if !own.isEmpty, let documents = try? writer.documents(own) {
      members.insert(documents, at: recorded.members.first?.key == "as" ? 2 : 1)
    }
    var text = "    {"
    var length = text.utf8.count
    for (index, member) in members.enumerated() {
      let piece = "\(CaseWriter.quoted(member.key)): \(member.text)"
      if index > 0 {
        let isFull = length + 2 + piece.utf8.count > lineBytesMax - 2
        text += isFull ? ",\n     " : ", "
        length = isFull ? 5 : length + 2
      }
      text += piece
      length += piece.utf8.count
    }
    return text + "}"
  }
}
