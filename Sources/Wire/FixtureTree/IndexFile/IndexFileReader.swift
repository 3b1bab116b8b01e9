import DocumentModel
import WireFormat

/// Converts the JSON tree of an index file to a configuration, or reports the first mistake with its place.
struct IndexFileReader {
  let file: String

  func configuration(_ root: JSONTree) throws(FixtureTreeError) -> IndexConfiguration {
    var configuration = IndexConfiguration()
    for member in try members(root, "") {
      switch member.name {
      case "indexes": configuration.indexes = try indexes(member.value)
      case "fieldOverrides": configuration.fields = try fieldOverrides(member.value)
      default:
        throw failure(
          member, "", "unknown key \"\(member.name)\"; the file has \"indexes\" and \"fieldOverrides\"")
      }
    }
    return configuration
  }

  // MARK: Indexes

  private func indexes(_ list: JSONTree) throws(FixtureTreeError) -> [IndexDefinition] {
    var known: [IndexDefinition: Int] = [:]
    var all: [IndexDefinition] = []
    for (index, element) in try elements(list, "indexes").enumerated() {
      let place = "indexes[\(index)]"
      let definition = try self.index(element, place)
      if let line = known[definition] {
        throw failure(element, place, "the same index is already declared on line \(line); remove one of them")
      }
      if let language = definition.textLanguage,
        all.contains(where: { $0.textLanguage == language && $0.hasSameCollections(as: definition) })
      {
        throw failure(
          element, place,
          "\(definition.collectionID) already has a text index in \(language.code); list all fields in one index")
      }
      known[definition] = element.line
      all.append(definition)
    }
    return all
  }

  private func index(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> IndexDefinition {
    var collectionID: String?
    var scope = IndexDefinition.Scope.collection
    var fields: [IndexDefinition.Field]?
    var options: JSONTree.Member?
    for member in try members(tree, place) {
      let inner = "\(place).\(member.name)"
      switch member.name {
      case "collectionGroup", "collectionId":
        guard collectionID == nil else {
          throw failure(member, place, "\"collectionGroup\" and the older \"collectionId\" are the same; remove one")
        }
        collectionID = try self.collectionID(member.value, inner)
      case "queryScope": scope = try self.scope(member.value, inner)
      case "fields": fields = try self.fields(member.value, inner)
      case "searchIndexOptions": options = member
      case "apiScope": try expect(member.value, inner, ["ANY_API"], why: "other scopes belong to other products")
      case "density": try expect(member.value, inner, ["SPARSE_ALL"], why: "an index holds documents with all fields")
      case "multikey", "unique":
        guard case .boolean(false) = member.value.kind else {
          throw failure(member.value, inner, "must be false: such indexes are not supported; remove the key")
        }
      case "shardCount":
        guard case .number = member.value.kind else { throw failure(member.value, inner, "must be a number") }
      default:
        throw failure(
          member, place,
          "unknown key \"\(member.name)\"; an index has \"collectionGroup\", \"queryScope\" and \"fields\"")
      }
    }
    guard let collectionID else {
      throw failure(tree, place, "lacks \"collectionGroup\", the id of the collections to index")
    }
    guard let fields else { throw failure(tree, place, "lacks \"fields\", the list of fields to index") }
    var definition = IndexDefinition(collectionID: collectionID, scope: scope, fields: fields)
    if let options {
      guard definition.textLanguage != nil else {
        throw failure(options, place, "\"searchIndexOptions\" needs fields with \"searchConfig\"")
      }
      let language = try textLanguage(options.value, "\(place).searchIndexOptions")
      for index in definition.fields.indices { definition.fields[index].mode = .text(language) }
    }
    return definition
  }

  private func fields(_ list: JSONTree, _ place: String) throws(FixtureTreeError) -> [IndexDefinition.Field] {
    let elements = try elements(list, place, max: IndexFile.fieldsMax)
    var fields: [IndexDefinition.Field] = []
    for (index, element) in elements.enumerated() {
      let inner = "\(place)[\(index)]"
      let field = try field(element, inner)
      // The name is implied. Tools list it.
      if field.path.isDocumentName, field.mode == .ascending, fields.last?.mode.isText == true { continue }
      if fields.contains(where: { $0.path == field.path }) {
        throw failure(element, inner, "field \(field.path.text) is already in the index")
      }
      if field.mode == .contains, fields.contains(where: { $0.mode == .contains }) {
        throw failure(element, inner, "an index can have only one array field")
      }
      if let last = fields.last {
        if last.mode.isText != field.mode.isText {
          throw failure(element, inner, "either all fields of an index have \"searchConfig\", or none")
        }
        if case .vector = last.mode { throw failure(element, inner, "the vector field must be the last of the index") }
        if last.path.isDocumentName, case .vector = field.mode {
        } else if last.path.isDocumentName {
          throw failure(element, inner, "only a vector field can follow __name__")
        }
      }
      fields.append(field)
    }
    guard let first = fields.first else { throw failure(list, place, "is empty; list the fields to index") }
    if fields.count == 1, !first.path.isDocumentName, !first.mode.isText {
      guard case .vector = first.mode else {
        throw failure(
          list, place, "an index of one field belongs in \"fieldOverrides\"; every field has one in each collection")
      }
    }
    return fields
  }

  private func field(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> IndexDefinition.Field {
    var path: FieldPath?
    var mode: IndexDefinition.Mode?
    for member in try members(tree, place) {
      if member.name == "fieldPath" {
        path = try fieldPath(member.value, "\(place).fieldPath")
        continue
      }
      guard let found = try self.mode(member, place) else {
        throw failure(
          member, place,
          "unknown key \"\(member.name)\"; a field has \"fieldPath\" and one of \"order\", "
            + "\"arrayConfig\", \"vectorConfig\" and \"searchConfig\"")
      }
      guard mode == nil else {
        throw failure(
          member, place,
          "a field has only one of \"order\", \"arrayConfig\", \"vectorConfig\" and \"searchConfig\"")
      }
      mode = found
    }
    guard let path else { throw failure(tree, place, "lacks \"fieldPath\"") }
    guard let mode else {
      throw failure(
        tree, place, "lacks \"order\", such as \"ASCENDING\" (or \"arrayConfig\", \"vectorConfig\" or \"searchConfig\")"
      )
    }
    if path.isDocumentName, mode != .ascending, mode != .descending {
      throw failure(tree, place, "__name__ requires an \"order\"")
    }
    return IndexDefinition.Field(path, mode)
  }

  // MARK: Fields

  private func fieldOverrides(_ list: JSONTree) throws(FixtureTreeError) -> [FieldIndexing] {
    var all: [FieldIndexing] = []
    for (index, element) in try elements(list, "fieldOverrides").enumerated() {
      let place = "fieldOverrides[\(index)]"
      let field = try fieldOverride(element, place)
      if all.contains(where: { $0.path == field.path && $0.collectionID.utf8.elementsEqual(field.collectionID.utf8) }) {
        throw failure(element, place, "this field of \(field.collectionID) is already declared above")
      }
      all.append(field)
    }
    return all
  }

  private func fieldOverride(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> FieldIndexing {
    var collectionID: String?
    var path: FieldPath?
    var entries: Set<FieldIndexing.Entries>?
    var expires: Bool?
    for member in try members(tree, place) {
      let inner = "\(place).\(member.name)"
      switch member.name {
      case "collectionGroup", "collectionId":
        guard collectionID == nil else {
          throw failure(member, place, "\"collectionGroup\" and the older \"collectionId\" are the same; remove one")
        }
        collectionID = try self.collectionID(member.value, inner, allowsDefault: true)
      case "fieldPath": path = try fieldPath(member.value, inner, allowsAll: true)
      case "indexes": entries = try fieldEntries(member.value, inner)
      case "ttl":
        guard case .boolean(let flag) = member.value.kind else {
          throw failure(member.value, inner, "must be true or false")
        }
        expires = flag
      default:
        throw failure(
          member, place,
          "unknown key \"\(member.name)\"; a field override has \"collectionGroup\", \"fieldPath\", "
            + "\"indexes\" and \"ttl\"")
      }
    }
    guard let collectionID else { throw failure(tree, place, "lacks \"collectionGroup\"") }
    guard let path else { throw failure(tree, place, "lacks \"fieldPath\"") }
    guard entries != nil || expires != nil else {
      throw failure(tree, place, "lacks \"indexes\"; write an empty list to exempt the field from indexing")
    }
    if collectionID.utf8.elementsEqual(FieldIndexing.allCollections.utf8), !path.isAllFields {
      throw failure(tree, place, "__default__ represents every collection and allows only the field path \"*\"")
    }
    if path.isAllFields, expires == true { throw failure(tree, place, "\"ttl\" needs the name of a field, not \"*\"") }
    return FieldIndexing(
      collectionID: collectionID, path: path, entries: entries ?? FieldIndexing.automatic, expires: expires ?? false)
  }

  private func fieldEntries(_ list: JSONTree, _ place: String) throws(FixtureTreeError) -> Set<
    FieldIndexing.Entries
  > {
    var entries: Set<FieldIndexing.Entries> = []
    for (index, element) in try elements(list, place).enumerated() {
      let inner = "\(place)[\(index)]"
      var scope = IndexDefinition.Scope.collection
      var mode: IndexDefinition.Mode?
      for member in try members(element, inner) {
        if member.name == "queryScope" {
          scope = try self.scope(member.value, "\(inner).queryScope")
        } else if let found = try self.mode(member, inner), mode == nil {
          if found.isText { throw failure(member, inner, "a text index must be declared under \"indexes\"") }
          if case .vector = found { throw failure(member, inner, "a vector field must be declared under \"indexes\"") }
          mode = found
        } else {
          throw failure(
            member, inner,
            "\"\(member.name)\" is not allowed here; write \"queryScope\" and either \"order\" or "
              + "\"arrayConfig\"")
        }
      }
      guard let mode else { throw failure(element, inner, "lacks \"order\" or \"arrayConfig\"") }
      entries.insert(FieldIndexing.Entries(scope, mode))
    }
    return entries
  }

  // MARK: Parts

  /// Returns the mode that a member sets, or `nil` if it does not set the mode.
  private func mode(_ member: JSONTree.Member, _ place: String) throws(FixtureTreeError) -> IndexDefinition.Mode? {
    let inner = "\(place).\(member.name)"
    switch member.name {
    case "order":
      return try choose(member.value, inner, [("ASCENDING", .ascending), ("DESCENDING", .descending)])
    case "arrayConfig": return try choose(member.value, inner, [("CONTAINS", .contains)])
    case "mode":
      return try choose(
        member.value, inner, [("ASCENDING", .ascending), ("DESCENDING", .descending), ("ARRAY_CONTAINS", .contains)])
    case "vectorConfig": return try vector(member.value, inner)
    case "searchConfig":
      try checkSearchConfig(member.value, inner)
      return .text(.english)
    default: return nil
    }
  }

  private func vector(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> IndexDefinition.Mode {
    var dimension: Int?
    for member in try members(tree, place) {
      switch member.name {
      case "dimension":
        guard case .number(let text) = member.value.kind, let number = Int(text),
          (1...Limits.vectorDimensionsMax).contains(number)
        else {
          throw failure(
            member.value, "\(place).dimension", "must be a whole number from 1 to \(Limits.vectorDimensionsMax)")
        }
        dimension = number
      case "flat":
        guard try members(member.value, "\(place).flat").isEmpty else {
          throw failure(member.value, "\(place).flat", "must be {}")
        }
      default:
        throw failure(
          member, place, "unknown key \"\(member.name)\"; a vector field has \"dimension\" and \"flat\"")
      }
    }
    guard let dimension else { throw failure(tree, place, "lacks \"dimension\", the number of components") }
    return .vector(dimension: dimension)
  }

  private func scope(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> IndexDefinition.Scope {
    try choose(tree, place, [("COLLECTION", .collection), ("COLLECTION_GROUP", .collectionGroup)])
  }

  private func collectionID(
    _ tree: JSONTree, _ place: String, allowsDefault: Bool = false
  ) throws(FixtureTreeError) -> String {
    guard case .string(let id) = tree.kind else { throw failure(tree, place, "must be a string, a collection id") }
    if allowsDefault, id.utf8.elementsEqual(FieldIndexing.allCollections.utf8) { return id }
    let bytes = Array(id.utf8)
    guard !bytes.isEmpty, bytes.count <= Limits.resourceIDBytesMax, !bytes.contains(UInt8(ascii: "/")),
      !ResourceID.isReserved(bytes), id != ".", id != ".."
    else {
      throw failure(
        tree, place, "\"\(id)\" is not a collection id; write the last part of the path, such as \"history\"")
    }
    return id
  }

  private func fieldPath(
    _ tree: JSONTree, _ place: String, allowsAll: Bool = false
  ) throws(FixtureTreeError) -> FieldPath {
    guard case .string(let text) = tree.kind else { throw failure(tree, place, "must be a string") }
    if text == "*" {
      guard allowsAll else { throw failure(tree, place, "must name one field; \"*\" is for field overrides only") }
      return FieldIndexing.allFields
    }
    do throws(ModelError) {
      let path = try FieldPath(text)
      guard !allowsAll || !path.isDocumentName else { throw ModelError.reservedFieldPath(text) }
      return path
    } catch {
      throw failure(tree, place, "\"\(text)\" is not a field path; write names like a.b, unusual ones in backticks")
    }
  }

  func choose<T>(
    _ tree: JSONTree, _ place: String, _ choices: [(name: String, value: T)]
  ) throws(FixtureTreeError) -> T {
    if case .string(let text) = tree.kind, let choice = choices.first(where: { $0.name == text }) {
      return choice.value
    }
    let names = choices.map { "\"\($0.name)\"" }.joined(separator: " or ")
    if case .string(let text) = tree.kind { throw failure(tree, place, "must be \(names), not \"\(text)\"") }
    throw failure(tree, place, "must be \(names)")
  }

  func expect(_ tree: JSONTree, _ place: String, _ names: [String], why: String) throws(FixtureTreeError) {
    if case .string(let text) = tree.kind, names.contains(text) { return }
    throw failure(tree, place, "must be \"\(names.joined(separator: "\" or \""))\": \(why); remove the key")
  }

  func members(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> [JSONTree.Member] {
    guard case .object(let members) = tree.kind else { throw failure(tree, place, "must be an object") }
    var seen: Set<[UInt8]> = []
    for member in members where !seen.insert(Array(member.name.utf8)).inserted {
      throw failure(member, place, "key \"\(member.name)\" occurs twice")
    }
    return members
  }

  func elements(
    _ tree: JSONTree, _ place: String, max: Int = IndexFile.declarationsMax
  ) throws(FixtureTreeError) -> [JSONTree] {
    guard case .array(let elements) = tree.kind else { throw failure(tree, place, "must be an array") }
    guard elements.count <= max else {
      throw failure(tree, place, "has \(elements.count) elements; at most \(max) are allowed")
    }
    return elements
  }

  func failure(_ tree: JSONTree, _ place: String, _ message: String) -> FixtureTreeError {
    FixtureTreeError(file: file, line: tree.line, column: tree.column, path: place, message: message)
  }

  func failure(_ member: JSONTree.Member, _ place: String, _ message: String) -> FixtureTreeError {
    FixtureTreeError(file: file, line: member.line, column: member.column, path: place, message: message)
  }
}
