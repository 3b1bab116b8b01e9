import Foundation
import HearthClient
import Testing

/// The example in docs/clients.md, section "From Swift". The code below is the same, and the test runs it.
@Suite(.timeLimit(.minutes(10))) struct DocumentedExampleTests {
  // begin of the example's types
  struct Todo: Codable {
    @DocumentID var id: String?
    var title: String
    var isDone = false
    @ServerTimestamp var madeAt: Date?
  }
  // end of the example's types

  @Test func theExampleRuns() async throws {
    let server = try TestHearth()
    let url = try #require(URL(string: server.url))
    var shown: [[String]] = []
    func show(_ todos: [Todo]) { shown.append(todos.map(\.title)) }
    try await example(url, show)
    #expect(shown == [["Buy milk today"]])
  }

  private func example(_ url: URL, _ show: ([Todo]) -> Void) async throws {
    // begin of the example
    let hearth = Hearth(url: url, project: "demo")
    try await hearth.auth.signInAnonymously()
    let todos = hearth.collection("todos")
    let milk = try await todos.add(Todo(title: "Buy milk"))
    let shop = "Corner"
    try await milk.update(["asked": .increment(1), "shop.name": shop, "draft": .delete])

    try await hearth.runTransaction { transaction in
      let todo = try await transaction.get(milk, as: Todo.self)
      transaction.update(todo.reference, ["title": "\(todo.data?.title ?? "") today"])
    }

    let open = todos.where("isDone", .equal, false).where("shop.name", .equal, shop)
    for try await snapshot in open.order(by: "title").snapshots(as: Todo.self) {
      show(snapshot.data)
      break
    }
    // end of the example
  }

  @Test func thePageShowsTheExample() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = try String(contentsOf: root.appendingPathComponent("docs/clients.md"), encoding: .utf8)
    let section = try #require(page.components(separatedBy: "\n## From Swift\n").dropFirst().first)
    let blocks = section.components(separatedBy: "```swift\n").dropFirst()
      .map { $0.components(separatedBy: "```")[0] }
    let source = try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8)
    #expect(
      blocks.contains(
        "import HearthClient\n\n" + (try part(source, "the example's types", indent: 2)) + "\n"
          + (try part(source, "the example", indent: 4))))
  }

  /// Returns the lines between the marks, without their indentation.
  private func part(_ source: String, _ name: String, indent: Int) throws -> String {
    let lines = source.components(separatedBy: "\n")
    let blank = String(repeating: " ", count: indent)
    let begin = try #require(lines.firstIndex(of: "\(blank)// begin of \(name)"))
    let end = try #require(lines.firstIndex(of: "\(blank)// end of \(name)"))
    return lines[(begin + 1)..<end].map { String($0.dropFirst(indent)) + "\n" }.joined()
  }
}
