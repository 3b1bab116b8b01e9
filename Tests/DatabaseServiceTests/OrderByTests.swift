import DatabaseService
import DocumentModel
import Testing
import WireFormat

@Suite struct OrderByTests {
  static func text(_ count: Int) -> String { (0..<count).map { "f\($0) desc" }.joined(separator: ", ") }

  @Test func orderIsLimitedToTheFieldsOfAnIndex() throws {
    #expect(try OrderBy.parse(Self.text(Limits.orderFieldsMax)).count == Limits.orderFieldsMax + 1)
    #expect(throws: Status(.invalidArgument, "order by clause cannot contain more than 100 fields")) {
      try OrderBy.parse(Self.text(Limits.orderFieldsMax + 1))
    }
  }
}
