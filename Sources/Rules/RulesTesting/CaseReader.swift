package import DocumentModel
import FixtureTree
import PipelineEngine
package import RulesEngine
import WireFormat

/// Reads the cases of Hearth's own format.
struct CaseReader {
  let text: TestFileText
  /// The time of cases that do not specify one.
  let time: Timestamp
  /// The stored files, or `nil` if the rules are for documents.
  var files: RuleTestFiles?

  private static let operations = [
    "get", "list", "listGroup", "create", "set", "update", "delete", "commit", "pipeline",
  ]
  private static let writeKeys = ["data", "mask", "merge", "transforms"]

  func test(_ tree: JSONTree, number: Int) throws(FixtureTreeError) -> RuleTest {
    let knownOperations = files == nil ? Self.operations : FileCaseReader.operations
    let details = files == nil ? ["query"] + Self.writeKeys : ["data", "files"]
    let known = ["it", "as", "documents"] + knownOperations + details + ["time", "expect", "line"]
    let unnamed = "number \(number)"
    // Read the title first, so that every error names the case.
    let title = tree.member("it").flatMap { if case .string(let text) = $0.kind { text } else { nil } }
    let members = try text.members(tree, "a case", known: known, in: title ?? unnamed)
    guard let it = title else {
      throw text.failure(members["it"] ?? tree, in: unnamed, "add \"it\": \"…\" to describe the case")
    }
    let time = try members["time"].map { (tree) throws(FixtureTreeError) in try text.time(tree, in: it) } ?? self.time
    let operations = knownOperations.filter { members[$0] != nil }
    guard operations.count == 1, let name = operations.first, let target = members[name] else {
      let problem =
        operations.isEmpty
        ? "the case has no request" : "\(operations.joined(separator: " and ")) cannot be combined"
      throw text.failure(
        tree, in: it, "\(problem); write exactly one of \(knownOperations.joined(separator: ", "))")
    }
    if files == nil { try checkBelonging(members, to: name, it) }
    guard let expect = members["expect"] else {
      throw text.failure(tree, in: it, "add \"expect\": \"allow\" or \"expect\": \"deny\"")
    }
    guard case .string(let word) = expect.kind, ["allow", "deny"].contains(word) else {
      throw text.failure(expect, in: it, "\"expect\" must be \"allow\" or \"deny\"")
    }
    let operation: RuleTest.Operation
    if var files {
      if let tree = members["files"] { try files.read(tree, text, time: time, in: it) }
      let reader = FileCaseReader(text: text, files: files, time: time)
      operation = .file(try reader.request(name, target, data: members["data"], in: it))
    } else {
      operation = try self.operation(name, target, members, it)
    }
    return RuleTest(
      name: it, fileLine: tree.line, auth: try auth(members["as"], time, it), time: time,
      operation: operation,
      documents: try members["documents"].map { (tree) throws(FixtureTreeError) in try documents(tree, it) } ?? [:],
      expectsAllow: word == "allow",
      expectedLine: try members["line"].map { (tree) throws(FixtureTreeError) in
        try text.count(tree, "\"line\"", in: it)
      })
  }

  /// Reads `{"rooms/r1": {"owner": "ann"}, "rooms/r2": null}`.
  private func documents(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> TestDocuments.Changes {
    guard case .object(let members) = tree.kind else {
      throw text.failure(
        tree, in: it,
        "\"documents\" of a case must be an object with paths as keys, such as {\"rooms/r1\": {\"owner\": \"ann\"}}")
    }
    var documents: TestDocuments.Changes = [:]
    for member in members {
      var name = JSONTree(.string(member.name))
      (name.line, name.column) = (member.line, member.column)
      let key = try key(name, it)
      let fields: EncodedFields?
      if case .null = member.value.kind {
        fields = nil
      } else {
        fields = try text.fields(member.value, of: key, in: it)
      }
      documents.updateValue(fields, forKey: key.path)
    }
    return documents
  }

  private func checkBelonging(
    _ members: [String: JSONTree], to name: String, _ it: String
  ) throws(FixtureTreeError) {
    let isQuery = name == "list" || name == "listGroup"
    let isWrite = ["create", "set", "update"].contains(name)
    if let query = members["query"], !isQuery {
      throw text.failure(query, in: it, "\"query\" is allowed only with list and listGroup, not with \(name)")
    }
    for key in Self.writeKeys {
      if let tree = members[key], !isWrite {
        throw text.failure(
          tree, in: it, "\"\(key)\" is allowed only with create, set and update, not with \(name)")
      }
    }
  }

  private func operation(
    _ name: String, _ target: JSONTree, _ members: [String: JSONTree], _ it: String
  ) throws(FixtureTreeError) -> RuleTest.Operation {
    switch name {
    case "get": return .get(try key(target, it))
    case "list":
      let path = try path(target, it)
      guard path.isCollection else {
        throw text.failure(
          target, in: it,
          "\"\(path.text)\" is not a collection; write the path of a collection, such as \"users\"")
      }
      return .list(
        try QueryReader(text: text, test: it).query(
          Query(parent: path.parent, collectionID: path.id), members["query"]))
    case "listGroup":
      let id = try text.string(target, "\"listGroup\"", in: it)
      guard !id.isEmpty, !id.utf8.contains(UInt8(ascii: "/")) else {
        throw text.failure(target, in: it, "\"listGroup\" must be a collection ID, such as \"messages\"")
      }
      return .list(
        try QueryReader(text: text, test: it).query(
          Query(collectionID: id, includesDescendants: true), members["query"]))
    case "pipeline": return .pipeline(try pipeline(target, it))
    case "commit":
      var writes: [TestWrite] = []
      for element in try text.elements(target, "\"commit\"", in: it) {
        let kinds = TestWrite.Kind.allCases.map(\.rawValue)
        let members = try text.members(element, "a write", known: kinds + Self.writeKeys, in: it)
        let found = kinds.filter { members[$0] != nil }
        guard found.count == 1, let target = members[found[0]] else {
          throw text.failure(element, in: it, "a write must have exactly one of \(kinds.joined(separator: ", "))")
        }
        writes.append(try write(found[0], target, members, it))
      }
      guard !writes.isEmpty else { throw text.failure(target, in: it, "\"commit\" needs at least one write") }
      return .commit(writes)
    default: return .commit([try write(name, target, members, it)])
    }
  }

  private func pipeline(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> TestPipeline {
    let written = try text.string(tree, "\"pipeline\"", in: it)
    let plan: PipelinePlan
    do throws(FixtureTreeError) {
      let stages = try PipelineNotation.parse(Array(written.utf8), file: "", in: TestFileText.database)
      do throws(PipelineError) {
        plan = try PipelinePlan(StructuredPipeline(stages), in: TestFileText.database)
      } catch { throw FixtureTreeError(file: "", message: error.description) }
    } catch {
      // The place in the string has no place in the file, because the string can have escapes.
      let place = error.line == 0 ? "" : " at line \(error.line), column \(error.column) of the pipeline"
      throw text.failure(tree, in: it, "the pipeline is not valid: \(error.message)\(place)")
    }
    var reads: [TestPipeline.Read] = []
    for source in plan.sources {
      switch source {
      case .query(let query): reads.append(.list(query))
      case .documents(let keys): reads += keys.map { .get($0) }
      case .literals: break
      }
    }
    return TestPipeline(text: written, reads: reads, refusal: plan.undecidable(inPast: false))
  }

  // MARK: Writes

  private func write(
    _ name: String, _ target: JSONTree, _ members: [String: JSONTree], _ it: String
  ) throws(FixtureTreeError) -> TestWrite {
    let kind = TestWrite.Kind(rawValue: name) ?? .set
    var write = TestWrite(kind, try key(target, it))
    if kind == .delete {
      for name in Self.writeKeys {
        if let tree = members[name] {
          throw text.failure(tree, in: it, "a delete cannot have \"\(name)\"; remove it")
        }
      }
      return write
    }
    if let data = members["data"] {
      write.data = (try? text.fields(data, of: write.key, in: it).decoded()) ?? MapValue()
      // If decoding failed, this call throws an error with the place.
      _ = try text.fields(data, of: write.key, in: it)
    } else if members["transforms"] == nil {
      throw text.failure(target, in: it, "add \"data\": {…} with the fields")
    }
    if let merge = members["merge"] {
      guard kind == .set, case .boolean(let merges) = merge.kind else {
        throw text.failure(merge, in: it, "\"merge\" must be true or false, and is allowed only with set")
      }
      if merges { write.mask = Self.leaves(of: write.data, below: []) }
    }
    if let mask = members["mask"] {
      write.mask = []
      for element in try text.elements(mask, "\"mask\"", in: it) {
        write.mask?.append(try fieldPath(try text.string(element, "a path of the mask", in: it), element, it))
      }
    } else if kind == .update {
      try nameFields(&write, members["data"], it)
    }
    if let transforms = members["transforms"] { write.transforms = try self.transforms(transforms, it) }
    return write
  }

  /// Reads the keys of an update's data as field paths, as the client libraries do: `{"stats.count": 1}`.
  private func nameFields(_ write: inout TestWrite, _ data: JSONTree?, _ it: String) throws(FixtureTreeError) {
    var nested = MapValue()
    var mask: [FieldPath] = []
    for (name, value) in write.data.entries {
      let path = name.contains(".") ? try fieldPath(name, data, it) : FieldPath(field: name)
      nested.set(value, at: path)
      mask.append(path)
    }
    write.data = nested
    write.mask = mask
  }

  /// Returns the paths of all values, except maps that are not empty.
  static func leaves(of map: MapValue, below path: [String]) -> [FieldPath] {
    map.entries.flatMap { name, value in
      if case .map(let inner) = value, !inner.entries.isEmpty, !inner.isOpaque {
        return leaves(of: inner, below: path + [name])
      }
      return [FieldPath(segments: path + [name])]
    }
  }

  private func transforms(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> [FieldTransform] {
    guard case .object(let members) = tree.kind else {
      throw text.failure(
        tree, in: it,
        "\"transforms\" must be an object with field paths as keys, such as {\"count\": {\"increment\": 1}}")
    }
    var transforms: [FieldTransform] = []
    for member in members {
      let path = try fieldPath(member.name, member.value, it)
      transforms.append(FieldTransform(path, try transform(member.value, it)))
    }
    return transforms
  }

  private func transform(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> FieldTransform.Kind {
    if case .string("serverTimestamp") = tree.kind { return .requestTime }
    let form =
      "a transform must be \"serverTimestamp\", or an object with one of increment, maximum, minimum, "
      + "arrayUnion, arrayRemove"
    guard case .object(let members) = tree.kind, members.count == 1, let member = members.first else {
      throw text.failure(tree, in: it, form)
    }
    let value = try text.value(member.value, in: it)
    switch (member.name, value) {
    case ("increment", .integer), ("increment", .double): return .increment(value)
    case ("maximum", .integer), ("maximum", .double): return .maximum(value)
    case ("minimum", .integer), ("minimum", .double): return .minimum(value)
    case ("arrayUnion", .array(let elements)): return .appendMissingElements(elements)
    case ("arrayRemove", .array(let elements)): return .removeAllFromArray(elements)
    default: throw text.failure(tree, in: it, form)
    }
  }

  // MARK: Names

  private func path(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> ResourcePath {
    let written = try text.string(tree, "a path", in: it)
    do throws(ModelError) {
      return try ResourcePath(written)
    } catch { throw text.failure(tree, in: it, "\"\(written)\" is not a path: \(error)") }
  }

  private func key(_ tree: JSONTree, _ it: String) throws(FixtureTreeError) -> DocumentKey {
    let path = try path(tree, it)
    guard let key = DocumentKey(path) else {
      throw text.failure(
        tree, in: it, "\"\(path.text)\" is not a document; write a path such as \"users/ann\"")
    }
    return key
  }

  private func fieldPath(_ name: String, _ tree: JSONTree?, _ it: String) throws(FixtureTreeError) -> FieldPath {
    do throws(ModelError) {
      return try FieldPath(name)
    } catch { throw text.failure(tree ?? text.root, in: it, "\"\(name)\" is not a field path: \(error)") }
  }

  private func auth(_ tree: JSONTree?, _ time: Timestamp, _ it: String) throws(FixtureTreeError) -> RulesAuth? {
    guard let tree else { return nil }
    switch tree.kind {
    case .null: return nil
    case .string(let uid): return TestAuth.auth(uid: uid, claims: MapValue(), time: time)
    case .object:
      let members = try text.members(tree, "\"as\"", known: ["uid", "token"], in: it)
      var uid: String?
      if let tree = members["uid"] { uid = try text.string(tree, "\"uid\"", in: it) }
      var claims = MapValue()
      if let token = members["token"] {
        guard case .map(let map) = try text.value(token, in: it) else {
          throw text.failure(token, in: it, "\"token\" must be an object of claims, {…}")
        }
        claims = map
      }
      return TestAuth.auth(uid: uid, claims: claims, time: time)
    default:
      throw text.failure(
        tree, in: it,
        "\"as\" must be a user ID, {\"uid\": …, \"token\": {…}}, or null for an unauthenticated caller")
    }
  }
}

/// Creates the identities of test callers.
package enum TestAuth {
  /// Returns an identity with the claims of every token, and those in `claims`, which override them.
  package static func auth(uid: String?, claims: MapValue, time: Timestamp) -> RulesAuth {
    var all = MapValue([
      ("iat", .integer(time.seconds)), ("auth_time", .integer(time.seconds)), ("exp", .integer(time.seconds + 3600)),
      ("firebase", .map(MapValue([("sign_in_provider", .string("custom")), ("identities", .map(MapValue()))]))),
    ])
    if let uid {
      all["sub"] = .string(uid)
      all["user_id"] = .string(uid)
    }
    for (name, value) in claims.entries { all[name] = value }
    return RulesAuth(uid: uid, claims: all)
  }
}
