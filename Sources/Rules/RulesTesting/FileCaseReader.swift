import DocumentModel
import FixtureTree
import RulesEngine
import WireFormat

/// Reads a request for a file: its method and path, and the file after the request.
struct FileCaseReader {
  let text: TestFileText
  let files: RuleTestFiles
  let time: Timestamp

  /// The operations of cases. `read` means both `get` and `list`.
  static let operations = ["read", "get", "list", "create", "update", "delete"]

  /// Reads the request of a case.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the case is malformed.
  func request(
    _ operation: String, _ target: JSONTree, data: JSONTree?, in test: String
  ) throws(FixtureTreeError) -> FileTestRequest {
    var (bucket, name) = RuleTestFiles.place(try text.string(target, "a path", in: test))
    let isList = operation == "list"
    // Compare bytes, as rules do: a slash and a combining mark are one Character.
    if isList, name.utf8.last == UInt8(ascii: "/") { name = String(Substring(name.utf8.dropLast())) }
    guard isList || !name.isEmpty else {
      throw text.failure(
        target, in: test, "the path has no file name; write photos/one.jpg or b/BUCKET/o/photos/one.jpg")
    }
    let isWrite = operation == "create" || operation == "update"
    if let data, !isWrite {
      throw text.failure(
        data, in: test, "\"data\" is allowed only with create and update, not with \(operation)")
    }
    let stored = isList ? nil : files[bucket, name]
    var request = FileTestRequest(
      operation == "read" ? [.get, .list] : RulesMethod(rawValue: operation).map { [$0] } ?? [],
      bucket: bucket, name: name)
    request.before = stored
    if operation == "create" {
      request.after = try RuleTestFiles.new(bucket, name, data, text, time: time, in: test)
    } else if operation == "update" {
      guard let stored else {
        throw text.failure(target, in: test, "the file \"\(name)\" does not exist; add it to \"files\"")
      }
      guard let data else { throw text.failure(target, in: test, "add \"data\": {…} with the changes") }
      request.after = try RuleTestFiles.updated(stored, by: data, text, time: time, in: test)
    }
    return request
  }
}
