import DocumentModel
import FixtureTree
import RulesEngine

/// Reads what a case asks of files: its method and path, and the file as it will be.
struct FileCaseReader {
  let text: TestFileText
  let files: RuleTestFiles
  /// `request.time`.
  let time: Timestamp

  /// What a case may ask; `read` asks for `get` and `list`.
  static let operations = ["read", "get", "list", "create", "update", "delete"]

  /// - Throws: ``FixtureTreeError`` that says where and what to do.
  func request(
    _ operation: String, _ target: PositionedJSON, data: PositionedJSON?, in test: String
  ) throws(FixtureTreeError) -> FileTestRequest {
    var (bucket, name) = RuleTestFiles.place(try text.string(target, "a path", in: test))
    let isList = operation == "list"
    // By bytes, as rules read it: a slash and a combining mark are one Character.
    if isList, name.utf8.last == UInt8(ascii: "/") { name = String(Substring(name.utf8.dropLast())) }
    guard isList || !name.isEmpty else {
      throw text.failure(target, in: test, "the path names no file; write photos/one.jpg or b/BUCKET/o/photos/one.jpg")
    }
    let isWrite = operation == "create" || operation == "update"
    if let data, !isWrite { throw text.failure(data, in: test, "\"data\" goes with create and update, not with \(operation)") }
    let stored = isList ? nil : files[bucket, name]
    var request = FileTestRequest(
      methods: operation == "read" ? [.get, .list] : RulesMethod(rawValue: operation).map { [$0] } ?? [],
      bucket: bucket, name: name, before: stored)
    if operation == "create" {
      request.after = try RuleTestFiles.new(bucket, name, data, text, time: time, in: test)
    } else if operation == "update" {
      guard let stored else {
        throw text.failure(target, in: test, "there is no file \"\(name)\" to update; add it to \"files\"")
      }
      guard let data else { throw text.failure(target, in: test, "an update needs \"data\": {…}") }
      request.after = try RuleTestFiles.updated(stored, by: data, text, time: time, in: test)
    }
    return request
  }
}
