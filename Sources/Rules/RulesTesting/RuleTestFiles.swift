package import DocumentModel
import FixtureTree
package import RulesEngine
import WireFormat

/// The request of a case for a file.
package struct FileTestRequest: Sendable {
  /// The methods of the request: two for `read`, otherwise one.
  package var methods: [RulesMethod]
  package var bucket: String
  /// The object's name, or for a list the prefix without its last slash.
  package var name: String
  /// The file before the request, or `nil` if it does not exist.
  package var before: MapValue?
  /// The file after the request, or `nil` if it does not exist.
  package var after: MapValue?

  /// A request for an object, or for those below a prefix. The files before and after it do not exist.
  package init(_ methods: [RulesMethod], bucket: String, name: String) {
    self.methods = methods
    self.bucket = bucket
    self.name = name
  }

  /// The path in reports.
  package var path: String { "b/\(bucket)/o/\(name)" }
}

/// The stored files of a test, by bucket and name, as rules see them.
struct RuleTestFiles {
  /// The bucket of files without one.
  static let bucket = "demo.appspot.com"

  private var files: [[UInt8]: MapValue] = [:]

  /// Returns the members of an empty file as rules see them (storage-api.md, section 12).
  static func file(_ bucket: String, _ name: String, _ time: Timestamp) -> MapValue {
    var file = MapValue()
    file["name"] = .string(name)
    file["bucket"] = .string(bucket)
    file["generation"] = .integer(time.microseconds)
    file["metageneration"] = .integer(1)
    file["size"] = .integer(0)
    file["timeCreated"] = .timestamp(time)
    file["updated"] = .timestamp(time)
    file["md5Hash"] = .string("1B2M2Y8AsgTpgAmY7PhCfg==")
    file["crc32c"] = .string("AAAAAA==")
    file["etag"] = .string("1/1")
    file["contentDisposition"] = .string("inline")
    file["contentEncoding"] = .string("identity")
    file["contentLanguage"] = .null
    file["contentType"] = .string("application/octet-stream")
    file["metadata"] = .map(MapValue())
    return file
  }

  /// The members that a test can set. The server sets the others.
  static let members = [
    "size", "contentType", "contentEncoding", "contentDisposition", "contentLanguage", "metadata", "md5Hash", "crc32c",
    "etag", "generation", "metageneration", "timeCreated", "updated",
  ]

  /// A file, or `nil` if it does not exist.
  subscript(bucket: String, name: String) -> MapValue? {
    get { files[Self.key(bucket, name)] }
    set { files[Self.key(bucket, name)] = newValue }
  }

  private static func key(_ bucket: String, _ name: String) -> [UInt8] { Array(bucket.utf8) + [0] + Array(name.utf8) }

  /// Splits `b/BUCKET/o/NAME` into bucket and name. Any other path is a name in ``bucket``.
  static func place(_ written: String) -> (bucket: String, name: String) {
    let slash = UInt8(ascii: "/")
    let text = written.utf8.first == slash ? String(Substring(written.utf8.dropFirst())) : written
    let parts = text.utf8.split(separator: slash, maxSplits: 3, omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    guard parts.count >= 3, parts[0] == "b", parts[2] == "o", !parts[1].isEmpty else { return (bucket, text) }
    return (parts[1], parts.count == 4 ? parts[3] : "")
  }

  /// Reads `{"NAME": {"size": …}, …}`. In a case, which `test` names, null removes a file.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if a file is malformed.
  mutating func read(
    _ tree: JSONTree, _ text: TestFileText, time: Timestamp, in test: String? = nil
  ) throws(FixtureTreeError) {
    guard case .object(let members) = tree.kind else {
      throw text.failure(
        tree, in: test,
        "\"files\" must be an object with file names as keys, such as {\"photos/one.jpg\": {\"size\": 2048}}")
    }
    for member in members {
      let (bucket, name) = Self.place(member.name)
      if test != nil, case .null = member.value.kind {
        self[bucket, name] = nil
        continue
      }
      self[bucket, name] = try Self.changed(
        Self.file(bucket, name, time), by: member.value, text, in: test ?? "files: \(member.name)")
    }
  }

  /// Returns a new file as a case describes it.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the description is malformed.
  static func new(
    _ bucket: String, _ name: String, _ tree: JSONTree?, _ text: TestFileText, time: Timestamp, in test: String
  ) throws(FixtureTreeError) -> MapValue {
    let file = file(bucket, name, time)
    return try tree.map { (tree) throws(FixtureTreeError) in try changed(file, by: tree, text, in: test) } ?? file
  }

  /// Returns a file with the metadata that a case changes. Members that the case does not name stay the same, also
  /// inside `metadata`, where null removes a member.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the description is malformed.
  static func updated(
    _ file: MapValue, by tree: JSONTree, _ text: TestFileText, time: Timestamp, in test: String
  ) throws(FixtureTreeError) -> MapValue {
    var file = file
    file["updated"] = .timestamp(time)
    if case .integer(let number)? = file["metageneration"] { file["metageneration"] = .integer(number + 1) }
    return try changed(file, by: tree, text, in: test)
  }

  private static func changed(
    _ file: MapValue, by tree: JSONTree, _ text: TestFileText, in test: String
  ) throws(FixtureTreeError) -> MapValue {
    var file = file
    for (name, value) in try text.members(tree, "a file", known: members, in: test) {
      file[name] = try Self.value(name, value, file, text, in: test)
    }
    return file
  }

  private static func value(
    _ name: String, _ tree: JSONTree, _ file: MapValue, _ text: TestFileText, in test: String
  ) throws(FixtureTreeError) -> Value {
    let value = try text.value(tree, in: test)
    switch (name, value) {
    case ("size", .integer(let number)) where number >= 0: return value
    case ("generation", .integer), ("metageneration", .integer): return value
    case ("timeCreated", .timestamp), ("updated", .timestamp): return value
    case ("metadata", .null): return .map(MapValue())
    case ("metadata", .map(let custom)):
      var metadata = MapValue()
      if case .map(let known)? = file["metadata"] { metadata = known }
      for (key, value) in custom.entries {
        switch value {
        case .string: metadata[key] = value
        case .null: metadata[key] = nil
        default: throw text.failure(tree, in: test, "the values of \"metadata\" must be strings")
        }
      }
      return .map(metadata)
    case ("size", _): throw text.failure(tree, in: test, "\"size\" must be a whole number of bytes")
    case ("generation", _), ("metageneration", _):
      throw text.failure(tree, in: test, "\"\(name)\" must be a whole number")
    case ("timeCreated", _), ("updated", _):
      throw text.failure(tree, in: test, "\"\(name)\" must be {\"$timestamp\": \"2025-03-27T14:30:00Z\"}")
    case ("metadata", _): throw text.failure(tree, in: test, "\"metadata\" must be an object of strings, {…}")
    case (_, .string): return value
    case ("contentLanguage", .null): return value
    default: throw text.failure(tree, in: test, "\"\(name)\" must be a string")
    }
  }
}
