/// Where in a message a decoder stands, for the texts of errors: `writes[0].update.fields[2].value`.
///
/// A stack of static names and numbers; the text is only built when an error is thrown.
struct MessagePath {
  private struct Step {
    let name: StaticString
    var index = -1
    var isMapEntry = false
  }

  private var steps: [Step] = []

  /// Leaves everything.
  mutating func removeAll() { steps.removeAll(keepingCapacity: true) }

  /// Goes into the field of that name (snake_case, as the texts have it).
  mutating func enter(_ name: StaticString) { steps.append(Step(name: name)) }

  /// Goes back out of the innermost field.
  mutating func leave() { _ = steps.popLast() }

  /// Says which element of the innermost field, a list, is meant. A list that stands alone has no field.
  mutating func element(_ index: Int) {
    guard !steps.isEmpty else { return }
    steps[steps.count - 1].index = index
  }

  /// Says which entry of the innermost field, a map, is meant. A map that stands alone has no field.
  mutating func entry(_ index: Int) {
    guard !steps.isEmpty else { return }
    steps[steps.count - 1].index = index
    steps[steps.count - 1].isMapEntry = true
  }

  /// The path as text, with one more field unless that is empty.
  func text(_ field: StaticString = "") -> String {
    var text = ""
    for step in steps {
      if !text.isEmpty { text += "." }
      text += step.name.description
      if step.index >= 0 { text += "[\(step.index)]" }
      if step.isMapEntry { text += ".value" }
    }
    if field.utf8CodeUnitCount > 0 { text += (text.isEmpty ? "" : ".") + field.description }
    return text
  }
}
