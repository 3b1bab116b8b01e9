import DocumentModel
import WireFormat

extension Command {
  /// Lists the files of a bucket.
  static let filesList = Command(
    name: "files ls", summary: "Lists the files of a bucket, or the buckets.", operands: "[PREFIX]",
    operandCount: 0...1,
    options: FilesClient.options + [
      .flag("recursive", "list the files at any depth instead of folders", letter: "r"),
      .flag("json", "print JSON, one file or folder per line"),
    ],
    details: """
      The verb lists the files whose names begin with PREFIX: `photos/` lists a folder, and gs://BUCKET/photos/ a
      folder of another bucket. Files in a subfolder are shown as one line, the name of the folder. `gs://` lists the
      buckets of the project.
      """,
    examples: [
      ("hearth files ls", "the bucket PROJECT.appspot.com of the server at http://127.0.0.1:8080"),
      ("hearth files ls gs://media/journeys/ --recursive", "all files of a folder"),
      ("hearth files ls gs://", "the buckets"),
      ("hearth files ls --data ./hearth-data --project demo", "without a server"),
    ],
    run: { arguments in
      let client = try FilesClient(arguments)
      defer { client.finish() }
      if let text = arguments.operands.first, FileLocation.isAllBuckets(text) {
        let buckets = try client.buckets()
        let isJSON = arguments.has("json")
        for bucket in buckets {
          Terminal.output.write(isJSON ? jsonLine(ofBucket: bucket) : Array("gs://\(bucket)/\n".utf8))
        }
        if buckets.isEmpty, !isJSON { Terminal.output.write(Terminal.output.faint("no buckets") + "\n") }
        return 0
      }
      let (bucket, prefix) = try FileLocation.stored(arguments.operands.first ?? "", bucket: client.bucket)
      let foldsFolders = !arguments.has("recursive")
      if arguments.has("json") {
        try client.forEachPage(in: bucket, prefix: prefix, foldsFolders: foldsFolders) { page in
          Terminal.output.write(page.folders.flatMap(line) + page.objects.flatMap(line))
        }
      } else {
        try printTable(client, bucket: bucket, prefix: prefix, foldsFolders: foldsFolders)
      }
      return 0
    })

  private static func printTable(
    _ client: FilesClient, bucket: String, prefix: String, foldsFolders: Bool
  ) throws {
    guard let database = DatabaseID(project: DatabaseChoice.defaultProject) else { return }
    var table = TextTable(
      of: database, nameTitle: "name", chosen: ["size", "type", "updated"].map { FieldPath(field: $0) })
    var count = 0
    var bytes = 0
    try client.forEachPage(in: bucket, prefix: prefix, foldsFolders: foldsFolders) { page in
      for folder in page.folders {
        Terminal.output.write(table.add(TextTable.Row(name: folder, fields: MapValue()), byteCount: folder.utf8.count))
      }
      for object in page.objects {
        count += 1
        bytes += object.size
        var fields = MapValue([("size", .string(ByteCount.text(object.size))), ("type", .string(object.contentType))])
        fields["updated"] = object.updated.map(Value.timestamp)
        Terminal.output.write(
          table.add(TextTable.Row(name: object.name, fields: fields), byteCount: object.name.utf8.count + 100))
      }
    }
    Terminal.output.write(table.flush())
    Terminal.output.write(Terminal.output.faint(ByteCount.text(ofFiles: count, bytes)) + "\n")
  }

  private static func jsonLine(ofBucket bucket: String) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.add("bucket", bucket)
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  private static func line(folder: String) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.add("folder", folder)
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  private static func line(_ object: FilesClient.Object) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.add("name", object.name)
    json.add("bucket", object.bucket)
    json.key("size")
    json.number(object.size)
    json.add("contentType", object.contentType)
    json.add("updated", object.updated?.description)
    json.add("generation", object.generation)
    json.add("crc32c", object.crc32c)
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }
}
