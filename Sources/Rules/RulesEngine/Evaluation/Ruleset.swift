/// A compiled ruleset for one service. Immutable: any number of threads can evaluate it at the same time.
package struct Ruleset: Sendable {
  /// The text of the ruleset.
  package let source: SourceText
  /// The syntax tree.
  package let tree: RulesetTree
  /// Warnings and lint, in the order of the text.
  package let diagnostics: [Diagnostic]
  /// The compiled rules, or `nil` if the text has no rules for the service. Then every request is denied.
  let program: Program?
  /// The service of ``program``.
  package let service: String

  /// Compiles the rules for `service`, and checks those for other services.
  /// - Throws: ``RulesetError`` with all diagnostics if the text is not a valid ruleset.
  package init(compiling text: String, service: String = "cloud.firestore") throws(RulesetError) {
    self.service = service
    source = SourceText(Array(text.utf8))
    tree = try Parser.parse(source)
    diagnostics = Checker.check(tree, source)
    guard !diagnostics.contains(where: { $0.severity == .error }) else {
      throw RulesetError(diagnostics: diagnostics)
    }
    program = Self.compile(tree, source, service: service)
  }

  /// Returns the names of the services in a text, in order, or an empty array if the text cannot be parsed.
  package static func services(in text: String) -> [String] {
    guard let tree = try? Parser.parse(SourceText(Array(text.utf8))) else { return [] }
    return tree.services.map(\.name.text)
  }

  /// A ruleset with another tree. Places in the tree refer to the text of `original`.
  init(_ original: Ruleset, tree: RulesetTree) {
    source = original.source
    self.tree = tree
    diagnostics = []
    service = original.service
    program = Self.compile(tree, source, service: service)
  }

  private static func compile(_ tree: RulesetTree, _ source: SourceText, service: String) -> Program? {
    tree.services.first { $0.name.text == service }.map { Compiler.compile(tree, $0, source) }
  }

  /// Authorizes a request with a new evaluator. For many requests, keep an ``Evaluator`` and call its `decide`.
  package func decide(
    _ request: RulesRequest, lookups: DocumentLookups? = nil, explaining: Decision.Explanation = .outcomes,
    mode: ProofMode = .sound
  ) -> Decision {
    Evaluator().decide(self, request, lookups: lookups, explaining: explaining, mode: mode)
  }

  /// The syntax tree as indented text.
  package var printedTree: String { TreePrinter.text(tree) }

  /// The compiled program as text: patterns, conditions and functions with numbered nodes.
  package var printedProgram: String { program.map(ProgramPrinter.text) ?? "" }
}
