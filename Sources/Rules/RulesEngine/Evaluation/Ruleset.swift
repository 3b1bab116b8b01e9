/// A compiled ruleset for one service. Immutable; any number of threads may judge by it at once.
package struct Ruleset: Sendable {
  /// The text it was compiled from.
  package let source: SourceText
  /// The parsed form.
  package let tree: RulesetTree
  /// Warnings and lint, in the order of the text.
  package let diagnostics: [Diagnostic]
  /// `nil` when the text has no rules for the service: then nothing is allowed.
  let program: Program?
  /// The service that ``program`` is for.
  package let service: String

  /// Compiles the rules for a service, and checks those for all others.
  /// - Throws: ``RulesetError`` when the text is no valid ruleset, with everything that is wrong.
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

  /// The names of the services that a text has rules for, in its order; none where it cannot be parsed.
  package static func services(in text: String) -> [String] {
    guard let tree = try? Parser.parse(SourceText(Array(text.utf8))) else { return [] }
    return tree.services.map(\.name.text)
  }

  /// A ruleset with another tree over the same text: places of its expressions lead into that text.
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

  /// Judges a request with an evaluator of its own. For many requests keep an ``Evaluator`` and call its `decide`.
  package func decide(
    _ request: RulesRequest, lookups: DocumentLookups? = nil, explaining: Decision.Explanation = .outcomes,
    mode: ProofMode = .sound
  ) -> Decision {
    Evaluator().decide(self, request, lookups: lookups, explaining: explaining, mode: mode)
  }

  /// The syntax tree as indented text.
  package var printedTree: String { TreePrinter.text(tree) }

  /// The compiled program as text: patterns, conditions and functions with their numbered nodes.
  package var printedProgram: String { program.map(ProgramPrinter.text) ?? "" }
}
