import Testing

@testable import HearthServer

/// Patterns for the IDs of databases.
@Suite struct DatabasePatternTests {
  @Test(arguments: [
    ("enterprise*", "enterprise", true), ("enterprise*", "enterprise-2", true), ("enterprise*", "enterpris", false),
    ("enterprise*", "(default)", false), ("big", "big", true), ("big", "bigger", false), ("big", "bi", false),
    ("*", "(default)", true), ("a*b", "a*b", true), ("a*b", "axb", false),
  ])
  func aStarStandsForTheRest(pattern: String, database: String, isMatch: Bool) {
    #expect(DatabasePattern(pattern).matches(database) == isMatch)
  }
}
