import Testing

@testable import DocumentStore

/// The table of the indexes that planners chose.
@Suite struct IndexChoicesTests {
  @Test func keepsTheLatestChoiceOfABoundedNumberOfShapes() {
    let choices = IndexChoices()
    #expect(choices.indexes(of: 1) == nil)
    for shape in 0..<IndexChoices.countMax { choices.set([], of: shape) }
    choices.set([], of: 0)
    #expect((0..<IndexChoices.countMax).allSatisfy { choices.indexes(of: $0) != nil })
    choices.set([], of: -1)
    #expect(choices.indexes(of: -1) != nil)
    #expect(choices.indexes(of: 0) == nil)
  }
}
