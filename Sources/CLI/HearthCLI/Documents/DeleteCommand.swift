import DocumentModel
import Glibc

extension Command {
  /// Deletes a document, or everything at and below a path of a running server.
  static let delete = Command(
    name: "delete", summary: "Deletes a document, or everything at and below a path.", operands: "PATH",
    operandCount: 1...1,
    options: DatabaseChoice.placeOptions + [
      .flag("recursive", "also delete everything below the path; required for a collection"),
      .flag("yes", "do not ask for confirmation"),
      .flag("quiet", "show no progress"),
    ],
    details: """
      Without --recursive, the documents in subcollections of a deleted document remain. With --recursive on a
      terminal, the verb asks for confirmation first.
      """,
    examples: [
      ("hearth delete users/ann", "one document"),
      ("hearth delete users/ann --recursive", "with everything below it"),
      ("hearth delete sessions --recursive --yes", "a whole collection, without a question"),
    ],
    run: { arguments in
      let path = try DatabaseChoice.path(arguments.operands[0])
      guard !path.isRoot else {
        throw CommandFailure.usage("give the path of a document or a collection, such as users/ann")
      }
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let shown = TerminalText.line("\(path)")
      guard arguments.has("recursive") else {
        guard let key = DocumentKey(path) else {
          throw CommandFailure.usage("'\(path)' is a collection; add --recursive to delete all its documents")
        }
        try client.delete(key)
        Terminal.output.write("deleted \(shown)\n")
        return 0
      }
      if !arguments.has("yes"), isatty(STDIN_FILENO) == 1, Terminal.error.isTerminal {
        guard Terminal.confirm("Delete \(shown) and everything below it from \(client.database)?") else {
          throw CommandFailure.failed("nothing was deleted")
        }
      }
      let count = try deleteAll(path, client, isQuiet: arguments.has("quiet"))
      Terminal.output.write("deleted \(count) \(count == 1 ? "document" : "documents") at and below \(shown)\n")
      return 0
    })

  private static func deleteAll(_ path: ResourcePath, _ client: ServerClient, isQuiet: Bool) throws -> Int {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    var count = 0
    var last: String?
    while true {
      let step = try client.deleteBelow(path, after: last)
      count += step.deleted
      last = step.last
      if last == nil { return count }
      progress.show(count, "documents deleted")
    }
  }
}
