/// The position of a decoder in a message, for error texts: `writes[0].update.fields[2].value`.
///
/// It is a stack of static names and numbers. The text is built only when an error is thrown.
struct MessagePath {
  private struct Step {
    let name: StaticString
    var index = -1
    var isMapEntry = false
  }

  private var steps: [Step] = []

  /// Leaves all fields.
  mutating func removeAll() { steps.removeAll(keepingCapacity: true) }

  /// Enters a field, given its name in snake_case, the form that error texts use.
  mutating func enter(_ name: StaticString) { steps.append(Step(name: name)) }

  /// Leaves the innermost field.
  mutating func leave() { _ = steps.popLast() }

  /// Sets the index of the current element in the innermost field, which is a list. Does nothing outside a field.
  mutating func element(_ index: Int) {
    guard !steps.isEmpty else { return }
    steps[steps.count - 1].index = index
  }

  /// Sets the index of the current entry in the innermost field, which is a map. Does nothing outside a field.
  mutating func entry(_ index: Int) {
    guard !steps.isEmpty else { return }
    steps[steps.count - 1].index = index
    steps[steps.count - 1].isMapEntry = true
  }

  /// Returns the path as text, followed by one more field unless that is empty.
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
