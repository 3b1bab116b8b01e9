import Glibc

extension Command {
  /// Removes files from buckets.
  static let filesRemove = Command(
    name: "files rm", summary: "Removes files from a bucket.", operands: "NAME…", operandCount: 1...10_000,
    options: FilesClient.options + [
      .flag("recursive", "remove each NAME and everything below NAME/", letter: "r"),
      .flag("yes", "do not ask for confirmation"),
      .flag("quiet", "show no progress and no summary"),
    ],
    details: """
      NAME is the name of a file in the default bucket, or gs://BUCKET/NAME. If a file does not exist, the verb stops
      with exit code 1; the files before it are removed. With --recursive on a terminal, it asks for confirmation
      first.
      """,
    examples: [
      ("hearth files rm patients/ann/documents/scan.pdf", "one file"),
      ("hearth files rm gs://media/journeys/old --recursive", "with everything below it"),
    ],
    run: { arguments in
      let client = try FilesClient(arguments)
      defer { client.finish() }
      let places = try arguments.operands.map { try FileLocation.stored($0, bucket: client.bucket) }
      let isRecursive = arguments.has("recursive")
      if !isRecursive, let index = places.firstIndex(where: { $0.name.isEmpty }) {
        throw CommandFailure.usage("'\(arguments.operands[index])' is a bucket; add --recursive to empty it")
      }
      if isRecursive, !arguments.has("yes"), isatty(STDIN_FILENO) == 1, Terminal.error.isTerminal {
        let names = places.map { "gs://\($0.bucket)/\($0.name)" }.joined(separator: ", ")
        guard Terminal.confirm("Remove \(TerminalText.line(names)) and everything below it?") else {
          throw CommandFailure.failed("nothing was removed")
        }
      }
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      var count = 0
      for (bucket, name) in places {
        let before = count
        if !name.isEmpty, try client.delete(name, in: bucket) { count += 1 }
        if isRecursive {
          try client.forEachPage(in: bucket, prefix: FileLocation.isFolder(name) ? name : name + "/") { page in
            for object in page.objects where try client.delete(object.name, in: bucket) {
              count += 1
              progress.show(count, "files removed")
            }
          }
        }
        if count == before, !name.isEmpty { throw FilesClient.missing(name, in: bucket) }
      }
      progress.clear()
      if !arguments.has("quiet") { Terminal.output.write("removed \(CountText.of(count, "file"))\n") }
      return 0
    })
}
