import DocumentModel
import FixtureTree
import RulesEngine
import WireFormat

/// Reads the JSON of the hosted service's test API (rules-language.md, section 19).
///
/// Values have the format of fixture trees. A mocked `get` also applies to `exists` with its path, and the reverse.
struct HostedTestReader {
  let text: TestFileText
  /// The time of requests that do not specify one.
  let now: Timestamp

  /// Reads a suite. `rulesFile` is for files that contain no rules.
  /// - Throws: ``FixtureTreeError`` with the place and a correction if the file is malformed.
  func suite(or rulesFile: String?, _ reader: SuiteReader) throws(FixtureTreeError) -> RuleTestSuite {
    let root = try text.members(text.root, "the file", known: ["source", "testSuite", "rules"])
    var suite = RuleTestSuite(
      file: text.file, rulesFile: text.file, rules: "", files: [text.file], documents: TestDocuments(), tests: [])
    if let source = root["source"], !reader.hasOwnRules {
      guard case .array(let files)? = source.member("files")?.kind, !files.isEmpty else {
        throw text.failure(source, "\"source\" must be {\"files\": [{\"name\": …, \"content\": …}]}")
      }
      for file in files {
        guard case .string(let content)? = file.member("content")?.kind else {
          throw text.failure(file, "a file of the source needs \"content\": \"rules_version = …\"")
        }
        suite.rules += suite.rules.isEmpty ? content : "\n" + content
      }
    } else {
      try reader.readRules(root["rules"], text, &suite)
    }
    guard case .array(let cases)? = root["testSuite"]?.member("testCases")?.kind else {
      throw text.failure(text.root, "\"testSuite\" must be {\"testCases\": […]}")
    }
    for (index, tree) in cases.enumerated() { suite.tests.append(try test(tree, number: index + 1)) }
    return suite
  }

  private func test(_ tree: JSONTree, number: Int) throws(FixtureTreeError) -> RuleTest {
    let unnamed = "number \(number)"
    let members = try text.members(
      tree, "a test case",
      known: ["expectation", "request", "resource", "functionMocks", "pathEncoding", "expressionReportLevel"],
      in: unnamed)
    guard case .string(let word)? = members["expectation"]?.kind, ["ALLOW", "DENY"].contains(word) else {
      throw text.failure(
        members["expectation"] ?? tree, in: unnamed, "\"expectation\" must be \"ALLOW\" or \"DENY\"")
    }
    guard let requestTree = members["request"] else { throw text.failure(tree, in: unnamed, "add \"request\": {…}") }
    var isPlain = false
    if case .string("PLAIN")? = members["pathEncoding"]?.kind { isPlain = true }
    var request = try request(requestTree, isPlain: isPlain, unnamed)
    request.resource = try members["resource"].flatMap { (tree) throws(FixtureTreeError) in try data(tree, unnamed) }
    var mocks = LookupMocks()
    if let list = members["functionMocks"] { mocks = try self.mocks(list, unnamed) }
    return RuleTest(
      name: "\(number): \(request.method.rawValue) \(request.path.text)", fileLine: tree.line, auth: request.auth,
      time: request.time, operation: .hosted(request, mocks), expectsAllow: word == "ALLOW")
  }

  private func request(
    _ tree: JSONTree, isPlain: Bool, _ test: String
  ) throws(FixtureTreeError) -> RulesRequest {
    guard case .object = tree.kind else { throw text.failure(tree, in: test, "\"request\" must be an object, {…}") }
    guard case .string(let word)? = tree.member("method")?.kind, let method = RulesMethod(rawValue: word) else {
      let names = RulesMethod.allCases.map(\.rawValue).joined(separator: ", ")
      throw text.failure(tree.member("method") ?? tree, in: test, "\"method\" must be one of \(names)")
    }
    let place = tree.member("path") ?? tree
    guard case .string(let written) = place.kind else { throw text.failure(place, in: test, "add \"path\": \"/…\"") }
    let (database, bytes) = try path(written, isPlain: isPlain, place, test)
    let path: ResourcePath
    do throws(ModelError) { path = try ResourcePath(checking: bytes) } catch {
      throw text.failure(place, in: test, "\"\(written)\" is not a path: \(error)")
    }
    var request = RulesRequest(method, path, database: database, time: now)
    if let time = tree.member("time") { request.time = try text.time(time, in: test) }
    if let auth = tree.member("auth") { request.auth = try self.auth(auth, test) }
    if let resource = tree.member("resource") { request.newResource = try data(resource, test) }
    if method == .list {
      request.query = try tree.member("query").map { (tree) throws(FixtureTreeError) in
        var query = Query(parent: path.isRoot ? .root : path.parent, collectionID: path.isRoot ? nil : path.id)
        if let limit = tree.member("limit") { query.limit = try text.count(limit, "\"limit\"", in: test) }
        if let offset = tree.member("offset") { query.offset = try text.count(offset, "\"offset\"", in: test) }
        return query
      }
    }
    return request
  }

  /// Splits `/databases/{database}/documents/…` into the database and the path below the documents root.
  private func path(
    _ written: String, isPlain: Bool, _ place: JSONTree, _ test: String
  ) throws(FixtureTreeError) -> (database: String, path: [UInt8]) {
    // Compare bytes: a slash and a combining mark after it are one Character.
    let segments = written.utf8.split(separator: UInt8(ascii: "/")).map { isPlain ? Array($0) : Self.decoded($0) }
    guard segments.count >= 3, segments[0].elementsEqual("databases".utf8), segments[2].elementsEqual("documents".utf8)
    else {
      throw text.failure(place, in: test, "\"\(written)\" must begin with /databases/(default)/documents")
    }
    return (String(decoding: segments[1], as: UTF8.self), Array(segments[3...].joined(separator: [UInt8(ascii: "/")])))
  }

  private static func decoded(_ segment: Substring.UTF8View) -> [UInt8] {
    var out: [UInt8] = []
    var rest = segment
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(2), as: UTF8.self)
      if byte == UInt8(ascii: "%"), digits.utf8.count == 2, let value = UInt8(digits, radix: 16) {
        out.append(value)
        rest = rest.dropFirst(2)
      } else {
        out.append(byte)
      }
    }
    return out
  }

  private func auth(_ tree: JSONTree, _ test: String) throws(FixtureTreeError) -> RulesAuth? {
    if case .null = tree.kind { return nil }
    guard case .map(let auth) = try text.value(tree, in: test) else {
      throw text.failure(tree, in: test, "\"auth\" must be {\"uid\": …, \"token\": {…}}, or null")
    }
    var uid: String?
    if case .string(let text)? = auth["uid"] { uid = text }
    var claims = MapValue()
    if case .map(let token)? = auth["token"] { claims = token }
    return RulesAuth(uid: uid, claims: claims)
  }

  /// Returns the fields of `{"data": {…}}`, or `nil` for null.
  private func data(_ tree: JSONTree, _ test: String) throws(FixtureTreeError) -> EncodedFields? {
    if case .null = tree.kind { return nil }
    guard let data = tree.member("data"), case .map(let fields) = try text.value(data, in: test) else {
      throw text.failure(tree, in: test, "a resource must be {\"data\": {…}}, or null")
    }
    return EncodedFields(fields)
  }

  // MARK: Mocks

  private func mocks(_ tree: JSONTree, _ test: String) throws(FixtureTreeError) -> LookupMocks {
    var documents: [(LookupMocks.Argument, LookupMocks.Result)] = []
    var absences: [(LookupMocks.Argument, LookupMocks.Result)] = []
    var presences: [(LookupMocks.Argument, LookupMocks.Result)] = []
    for mock in try text.elements(tree, "\"functionMocks\"", in: test) {
      let members = try text.members(mock, "a mock", known: ["function", "args", "result"], in: test)
      guard case .string(let function)? = members["function"]?.kind, function == "get" || function == "exists" else {
        throw text.failure(
          members["function"] ?? mock, in: test,
          "\"function\" must be \"get\" or \"exists\"; other functions cannot be mocked")
      }
      guard case .array(let arguments)? = members["args"]?.kind, let first = arguments.first, arguments.count == 1
      else {
        throw text.failure(
          mock, in: test, "\"args\" must be [{\"exactValue\": \"/databases/…\"}] or [{\"anyValue\": {}}]")
      }
      let argument = try argument(first, test)
      let result = members["result"] ?? mock
      if result.member("undefined") != nil {
        documents.append((argument, .undefined))
        continue
      }
      guard let value = result.member("value") else {
        throw text.failure(result, in: test, "\"result\" must be {\"value\": …} or {\"undefined\": {}}")
      }
      switch (function, value.kind) {
      case ("exists", .boolean(true)): presences.append((argument, .document(.none)))
      case ("exists", .boolean(false)): absences.append((argument, .missing))
      case ("exists", _):
        throw text.failure(value, in: test, "the value of exists() must be true or false")
      default:
        guard let fields = try data(value, test) else {
          throw text.failure(
            value, in: test,
            "the value of get() must be {\"data\": {…}}; for a missing document, write {\"undefined\": {}}")
        }
        documents.append((argument, .document(fields)))
      }
    }
    var mocks = LookupMocks()
    mocks.entries = (documents + absences + presences).map { (argument: $0.0, result: $0.1) }
    return mocks
  }

  private func argument(_ tree: JSONTree, _ test: String) throws(FixtureTreeError) -> LookupMocks.Argument {
    if tree.member("anyValue") != nil { return .any }
    guard let exact = tree.member("exactValue"), case .string(let written) = exact.kind else {
      throw text.failure(tree, in: test, "an argument must be {\"exactValue\": \"/databases/…\"} or {\"anyValue\": {}}")
    }
    return .path(try path(written, isPlain: true, exact, test).path)
  }
}
