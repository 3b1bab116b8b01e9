import Replication
import Testing
import TestSupport

/// Names and bodies come from other nodes.
@Suite struct StoreBatchTests {
  @Test(arguments: ["accounts", "files", "documents/(default)", "documents/a.b_c-D~9:", "documents/..a"])
  func namesOfStores(_ text: String) throws {
    let name = try #require(StoreName(text))
    #expect(name.text == text)
    #expect(name.database.map { "documents/\($0)" } ?? text == text)
  }

  @Test(
    arguments: [
      "", "account", "accounts/", "accounts/x", "documents", "documents/", "documents/.", "documents/..",
      "documents/a/b", "documents/../files", "documents/a\u{0}", "documents/ä", "/documents/a", "Documents/a",
      "documents/" + String(repeating: "a", count: 101),
    ])
  func whatIsNoName(_ text: String) { #expect(StoreName(text) == nil) }

  @Test func bodiesHaveOneForm() throws {
    let batch = StoreBatch(store: .accounts, isFirst: true, isSealed: false, content: [1, 2, 3])
    #expect(batch.body == [1, 8] + Array("accounts".utf8) + [1, 2, 3])
    #expect(StoreBatch(batch.body) == batch)
    for count in 0..<10 { #expect(StoreBatch(Array(batch.body.prefix(count))) == nil, "\(count)") }
    #expect(StoreBatch([4] + batch.body.dropFirst()) == nil)
    var random = SplitMix(seed: 1)
    for _ in 0..<2000 {
      var body = batch.body
      body[Int.random(in: body.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      if let read = StoreBatch(body) { #expect(read.body == body) }
    }
  }
}
