import DocumentModel
import FixtureTree
import Foundation
import Testing
import WireFormat

/// Reads the fixtures of the repository.
@Suite struct FixtureFilesTests {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("fixtures")

  static func read(_ system: String) throws -> [FixtureDocument] {
    let source = try ByteSource(file: folder.appendingPathComponent("\(system).json").path)
    var reader = try FixtureReader(source, database: demo)
    var all: [FixtureDocument] = []
    while let document = try reader.next() { all.append(document) }
    return all
  }

  /// The number of documents that match each collection pattern.
  static let counts: [(system: String, counts: [String: Int])] = [
    (
      "well-meing",
      ["users": 6, "users/*/habits": 12, "users/*/habits/*/history": 979, "users/*/reports": 6]
    ),
    ("habitual", ["habits": 15, "records": 873]),
    ("shop", ["customers": 4, "orders": 7, "orders/*/items": 11, "products": 8, "products/*/reviews": 6]),
    (
      "journeys",
      [
        "journeys": 6, "journeys/*/practices": 32, "journeys/*/practices/*/exercises": 201, "profiles": 12,
        "profiles/*/practices": 148, "profiles/*/practices/*/inputs": 412, "recommended": 7,
      ]
    ),
    (
      "dilly-daily", ["recipes": 61, "ingredients": 121, "users": 5, "users/*/recipes": 9, "users/*/groceries": 45]
    ),
    (
      "fit-care",
      [
        "patients": 4, "patients/*/measurements": 1261, "patients/*/appointments": 47, "patients/*/documents": 18,
        "patients/*/medications": 11, "patients/*/meals": 180, "shares": 11,
      ]
    ),
  ]

  @Test(arguments: counts.indices)
  func fixturesHaveTheirDocuments(index: Int) throws {
    let (system, expected) = Self.counts[index]
    var counts: [String: Int] = [:]
    for document in try Self.read(system) {
      counts[CollectionShape.pattern(of: document.key.collection), default: 0] += 1
    }
    #expect(counts == expected, "\(system)")
  }

  @Test(arguments: counts.map(\.system))
  func fixturesSurviveAnExport(system: String) throws {
    let before = try Self.read(system).sorted { $0.key < $1.key }
    let text = try export(before)
    let after = try documents(text).sorted { $0.key < $1.key }
    #expect(before.map(\.key) == after.map(\.key))
    #expect(before.map(\.fields) == after.map(\.fields))
    #expect(try export(after) == text)
  }

  @Test func theDocumentedSampleExists() throws {
    let all = try Self.read("well-meing").filter { $0.key.path.text.hasPrefix("users/user-id-123456") }
    #expect(
      try all.map(line) == [
        "users/user-id-123456/reports/2025-04-29T16:30:12 {content: \"...\", title: \"Road to marathon\"}",
        "users/user-id-123456/habits/Running/history/id-1234 {metrics: {Distance: 12, Duration: \"01:30:00\"}, "
          + "notes: \"20% slope\", timestamp: time(2025-03-27T14:30:00Z)}",
        "users/user-id-123456/habits/Running {description: \"Go for a run\", goal: \"3 times a week\", "
          + "metrics: {Distance: {config: {max: 100, min: 0, type: \"int\"}, description: \"Kilometers run\", "
          + "input: \"slider\"}, Duration: {description: \"Minutes of running\", input: \"time\"}}}",
        "users/user-id-123456 {bio: \"...\", name: \"Kello\", newReportDate: time(2025-05-07T00:00:00Z)}",
      ])
  }

  @Test func countsPerDayMatchTheRecords() throws {
    var counted: [String: Int] = [:]
    var recorded: [String: Int] = [:]
    for document in try Self.read("habitual") {
      let fields = try document.fields.decoded()
      if document.key.collection.id == "habits", case .map(let days)? = fields["days"] {
        for (day, value) in days.entries {
          guard case .integer(let count) = value else { continue }
          counted["\(document.key.path.id) \(day)", default: 0] += Int(count)
        }
      } else if case .string(let habit)? = fields["habit_id"], case .timestamp(let at)? = fields["at"] {
        recorded["\(habit) \(at.description.prefix(10))", default: 0] += 1
      }
    }
    #expect(counted == recorded)
    #expect(!counted.isEmpty)
  }
}
