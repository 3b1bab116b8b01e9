import RulesEngine
package import WireFormat

extension Coverage {
  /// Writes the `report` of the emulator's coverage (rules-language.md, section 17.1): one node for each condition
  /// and each function, in the order of the text. Literals are omitted. An expression that was never evaluated has
  /// no values.
  package func appendReport(to json: inout JSONWriter) {
    enum Node {
      case condition(RulesetOutline.Place)
      case function(RulesetOutline.Function)
    }
    var nodes: [(start: Int, node: Node)] = []
    for function in outline.functions {
      if let first = function.expressions.first { nodes.append((first.extent.lowerBound, .function(function))) }
    }
    for condition in outline.allows.compactMap(\.condition) where !condition.isLiteral {
      nodes.append((condition.extent.lowerBound, .condition(condition)))
    }
    json.beginArray()
    for (_, node) in nodes.sorted(by: { $0.start < $1.start }) {
      switch node {
      case .condition(let place): append(place, to: &json)
      case .function(let function): append(function, to: &json)
      }
    }
    json.endArray()
  }

  private func append(_ function: RulesetOutline.Function, to json: inout JSONWriter) {
    guard let first = function.expressions.first, let result = function.expressions.last else { return }
    let whole = first.span.lowerBound..<max(first.span.upperBound, result.span.upperBound)
    let start = function.expressions.count > 1 ? ruleset.source.letStart(before: whole.lowerBound) : nil
    json.beginObject()
    appendPosition((start ?? whole.lowerBound)..<whole.upperBound, to: &json)
    appendValues(of: result, to: &json)
    appendChildren(function.expressions, to: &json)
    json.endObject()
  }

  private func append(_ place: RulesetOutline.Place, to json: inout JSONWriter) {
    json.beginObject()
    appendPosition(place.span, to: &json)
    appendValues(of: place, to: &json)
    appendChildren(place.children, to: &json)
    json.endObject()
  }

  private func appendChildren(_ places: [RulesetOutline.Place], to json: inout JSONWriter) {
    let places = places.filter { !$0.isLiteral }
    guard !places.isEmpty else { return }
    json.key("children")
    json.beginArray()
    for place in places { append(place, to: &json) }
    json.endArray()
  }

  /// Writes a place. Offsets are 0-based, and the end is inclusive.
  private func appendPosition(_ range: Range<Int>, to json: inout JSONWriter) {
    json.key("sourcePosition")
    json.beginObject()
    json.key("line")
    json.number(ruleset.source.line(of: range.lowerBound))
    json.key("column")
    json.number(ruleset.source.column(of: range.lowerBound))
    json.key("currentOffset")
    json.number(range.lowerBound)
    json.key("endOffset")
    json.number(max(range.lowerBound, range.upperBound - 1))
    json.endObject()
  }

  private func appendValues(of place: RulesetOutline.Place, to json: inout JSONWriter) {
    let counts = values(of: place)
    guard !counts.isEmpty else { return }
    json.key("values")
    json.beginArray()
    for count in counts {
      json.beginObject()
      json.key("value")
      json.value(count.value.isEmpty ? "{}" : count.value)
      json.key("count")
      json.number(count.count)
      json.endObject()
    }
    json.endArray()
  }
}

extension RulesetOutline.Place {
  /// The place from the first to the last byte of the expression and its operands, without closing brackets after them.
  fileprivate var span: Range<Int> {
    children.reduce(range) { span, child in
      let inner = child.span
      return min(span.lowerBound, inner.lowerBound)..<max(span.upperBound, inner.upperBound)
    }
  }
}

extension SourceText {
  /// Returns the start of the `let` whose value starts at `offset`.
  fileprivate func letStart(before offset: Int) -> Int? {
    let word = Array("let".utf8)
    return stride(from: offset - word.count, through: 0, by: -1).first {
      bytes[$0..<$0 + word.count].elementsEqual(word)
    }
  }
}
