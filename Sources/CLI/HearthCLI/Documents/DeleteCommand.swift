import DocumentModel
import Glibc

extension Command {
  /// Deletes a document, or everything at and below a path.
  static let delete = Command(
    name: "delete", summary: "Deletes a document, or everything at and below a path.", operands: "PATH",
    operandCount: 1...1,
    options: DatabaseChoice.serverOptions + [
      .flag("recursive", "delete everything below the path too; needed for a collection"),
      .flag("yes", "do not ask"),
      .flag("quiet", "no progress"),
    ],
    details: "Deleting a document leaves the documents of its sub-collections, unless --recursive is given.",
    examples: [
      ("hearth delete users/ann", "one document"),
      ("hearth delete users/ann --recursive", "with everything below it; asks on a terminal"),
      ("hearth delete sessions --recursive --yes", "a whole collection"),
    ],
    run: { arguments in
      let path = try DatabaseChoice.path(arguments.operands[0])
      guard !path.isRoot else { throw CommandFailure.usage("the path of a document or collection is needed") }
      let client = try ServerClient(arguments)
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
      Terminal.output.write("deleted \(count) documents at and below \(shown)\n")
      return 0
    })

  private static func deleteAll(_ path: ResourcePath, _ client: ServerClient, isQuiet: Bool) throws -> Int {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    var count = 0
    var last: String?
    while true {
      let step = try client.deleteBelow(path, behind: last)
      count += step.deleted
      last = step.last
      if last == nil { return count }
      progress.show(count, "documents deleted")
    }
  }
}
