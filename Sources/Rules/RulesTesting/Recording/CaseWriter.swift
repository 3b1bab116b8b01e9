import DocumentModel
import FixtureTree
import RulesEngine
import WireFormat

/// The reason why a recorded request cannot be written as a case.
struct InexpressibleCase: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

/// Writes cases in the format that ``CaseReader`` reads.
struct CaseWriter {
  /// A member of a case: its key and its value as JSON text.
  typealias Member = (key: String, text: String)

  /// The database of the case. References to its documents are written as paths.
  let database: DatabaseID
  /// The text of the rules.
  let rules: [UInt8]

  // MARK: Requests

  /// Returns the members that describe the request, without the caller.
  /// - Throws: ``InexpressibleCase`` if the format has no notation for the request.
  func request(_ test: RuleTest) throws(InexpressibleCase) -> [Member] {
    switch test.operation {
    case .get(let key): return [("get", Self.quoted(key.path.text))]
    case .list(let query): return try list(query)
    case .pipeline(let pipeline): return [("pipeline", Self.quoted(pipeline.text))]
    case .commit(let writes):
      if writes.count == 1 { return try write(writes[0]) }
      var texts: [String] = []
      for write in writes { texts.append(Self.object(try self.write(write))) }
      return [("commit", "[\(texts.joined(separator: ", "))]")]
    case .file(let request): return try FileCaseWriter(values: self).request(request, time: test.time)
    case .hosted: throw InexpressibleCase("requests of the hosted test API are not recorded")
    }
  }

  private func list(_ query: Query) throws(InexpressibleCase) -> [Member] {
    guard let id = query.collectionID else {
      throw InexpressibleCase("a query of all collections below a document has no notation")
    }
    guard query.includesDescendants else {
      return [("list", Self.quoted(query.parent.appending(id).text))] + (try details(of: query))
    }
    guard query.parent.isRoot else {
      throw InexpressibleCase("a query of a collection group below a document has no notation")
    }
    return [("listGroup", Self.quoted(id))] + (try details(of: query))
  }

  private func details(of query: Query) throws(InexpressibleCase) -> [Member] {
    var members: [Member] = []
    switch query.filter {
    case .and(let filters)?: members.append(("where", try conditions(filters)))
    case let filter?: members.append(("where", try conditions([filter])))
    case nil: break
    }
    if !query.orders.isEmpty {
      let orders = query.orders.map { order in
        let path = order.path.text
        guard path.utf8.contains(UInt8(ascii: " ")) else {
          return Self.quoted(order.isDescending ? path + " desc" : path)
        }
        return "[\(Self.quoted(path)), \(Self.quoted(order.isDescending ? "desc" : "asc"))]"
      }
      members.append(("orderBy", "[\(orders.joined(separator: ", "))]"))
    }
    if let limit = query.limit { members.append(("limit", String(limit))) }
    if query.offset > 0 { members.append(("offset", String(query.offset))) }
    return members.isEmpty ? [] : [("query", Self.object(members))]
  }

  private func conditions(_ filters: [QueryFilter]) throws(InexpressibleCase) -> String {
    var texts: [String] = []
    for filter in filters { texts.append(try condition(filter)) }
    return "[\(texts.joined(separator: ", "))]"
  }

  private func condition(_ filter: QueryFilter) throws(InexpressibleCase) -> String {
    switch filter {
    case .and(let filters): return "{\"and\": \(try conditions(filters))}"
    case .or(let filters): return "{\"or\": \(try conditions(filters))}"
    case .field(let path, let operation, let value):
      let name = QueryReader.operators.first { $0.1 == operation }?.0 ?? operation.symbol
      return "[\(Self.quoted(path.text)), \(Self.quoted(name)), \(try self.value(value))]"
    case .unary(let path, let test):
      let (name, operand) =
        switch test {
        case .isNull: ("==", "null")
        case .isNotNull: ("!=", "null")
        case .isNaN: ("==", "{\"$double\": \"NaN\"}")
        case .isNotNaN: ("!=", "{\"$double\": \"NaN\"}")
        }
      return "[\(Self.quoted(path.text)), \(Self.quoted(name)), \(operand)]"
    }
  }

  // MARK: Writes

  private func write(_ write: TestWrite) throws(InexpressibleCase) -> [Member] {
    var members: [Member] = [(write.kind.rawValue, Self.quoted(write.key.path.text))]
    guard write.kind != .delete else { return members }
    var data = write.data
    var mask = write.mask
    if write.kind == .update, let paths = mask, paths.allSatisfy({ write.data[$0] != nil }) {
      // As client libraries write updates: field paths as keys.
      data = MapValue()
      for path in paths {
        let isPlain = path.segments.count == 1 && !path.segments[0].utf8.contains(UInt8(ascii: "."))
        data[isPlain ? path.segments[0] : path.text] = write.data[path]
      }
      mask = nil
    }
    if !data.entries.isEmpty || write.transforms.isEmpty || (write.kind != .update && mask == nil) {
      members.append(("data", try fields(EncodedFields(data))))
    }
    if write.kind == .set, let paths = mask, Set(paths) == Set(CaseReader.leaves(of: data, below: [])) {
      members.append(("merge", "true"))
    } else if let mask {
      members.append(("mask", "[\(mask.map { Self.quoted($0.text) }.joined(separator: ", "))]"))
    }
    if !write.transforms.isEmpty {
      var transforms: [Member] = []
      for transform in write.transforms { transforms.append((transform.path.text, try text(transform.kind))) }
      members.append(("transforms", Self.object(transforms)))
    }
    return members
  }

  private func text(_ transform: FieldTransform.Kind) throws(InexpressibleCase) -> String {
    switch transform {
    case .requestTime: return "\"serverTimestamp\""
    case .increment(let value): return "{\"increment\": \(try self.value(value))}"
    case .maximum(let value): return "{\"maximum\": \(try self.value(value))}"
    case .minimum(let value): return "{\"minimum\": \(try self.value(value))}"
    case .appendMissingElements(let elements): return "{\"arrayUnion\": \(try self.value(.array(elements)))}"
    case .removeAllFromArray(let elements): return "{\"arrayRemove\": \(try self.value(.array(elements)))}"
    }
  }

  // MARK: Callers

  /// The claims that every token has. Rules rarely read them.
  private static let standardClaims = ["aud", "firebase", "iss", "sub", "user_id"] + timeClaims
  private static let timeClaims = ["auth_time", "exp", "iat"]

  /// Returns the `as` member, or `nil` for an unauthenticated caller. If `isReduced` is `true`, the claims that every
  /// token has are left out, unless the rules contain their names.
  func caller(_ auth: RulesAuth?, isReduced: Bool) throws(InexpressibleCase) -> Member? {
    guard let auth else { return nil }
    var claims = try decoded(auth.claims)
    let standard = TestAuth.auth(uid: auth.uid, claims: MapValue(), time: Timestamp(uncheckedMicroseconds: 0))
    let known = try decoded(standard.claims)
    for name in Self.standardClaims {
      // The reader derives the times from that of the case.
      let isKnown = known[name] == claims[name] && !Self.timeClaims.contains(name)
      if isKnown || (isReduced && !mentions(name)) { claims[name] = nil }
    }
    guard !claims.entries.isEmpty || auth.uid == nil else { return ("as", Self.quoted(auth.uid ?? "")) }
    var members: [Member] = []
    if let uid = auth.uid { members.append(("uid", Self.quoted(uid))) }
    if !claims.entries.isEmpty { members.append(("token", try fields(EncodedFields(claims)))) }
    return ("as", Self.object(members))
  }

  /// Returns the names of the claims that not every token has.
  func ownClaims(_ auth: RulesAuth?) -> [String] {
    guard let auth, let claims = try? auth.claims.decoded() else { return [] }
    return claims.entries.map(\.key).filter { !Self.standardClaims.contains($0) }
  }

  /// Whether the rules contain a word.
  func mentions(_ word: String) -> Bool {
    func isPart(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "_") || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
    }
    let (bytes, word) = (rules, Array(word.utf8))
    var rest = bytes[...]
    while let range = rest.firstRange(of: word) {
      let isWhole =
        (range.lowerBound == bytes.startIndex || !isPart(bytes[range.lowerBound - 1]))
        && (range.upperBound == bytes.endIndex || !isPart(bytes[range.upperBound]))
      if isWhole { return true }
      rest = bytes[range.upperBound...]
    }
    return false
  }

  // MARK: Values

  /// Returns the `documents` member: all documents of `changes` in the order of their names.
  func documents(_ changes: TestDocuments.Changes) throws(InexpressibleCase) -> Member {
    var members: [Member] = []
    for (path, fields) in changes.sorted(by: { $0.key < $1.key }) {
      if let fields {
        members.append((path.text, try self.fields(fields)))
      } else {
        members.append((path.text, "null"))
      }
    }
    return ("documents", Self.object(members))
  }

  func fields(_ fields: EncodedFields) throws(InexpressibleCase) -> String {
    var out: [UInt8] = []
    do throws(WireError) { try FixtureFields.appendLine(fields, database: database, to: &out) } catch {
      throw InexpressibleCase("a document cannot be decoded: \(error)")
    }
    return String(decoding: out, as: UTF8.self)
  }

  func value(_ value: Value) throws(InexpressibleCase) -> String {
    var out: [UInt8] = []
    do throws(WireError) { try FixtureFields.appendLine(value, database: database, to: &out) } catch {
      throw InexpressibleCase("a value cannot be decoded: \(error)")
    }
    return String(decoding: out, as: UTF8.self)
  }

  private func decoded(_ fields: EncodedFields) throws(InexpressibleCase) -> MapValue {
    do throws(WireError) { return try fields.decoded() } catch {
      throw InexpressibleCase("the claims cannot be decoded: \(error)")
    }
  }

  /// Returns a JSON object on one line.
  static func object(_ members: [Member]) -> String {
    "{" + members.map { "\(quoted($0.key)): \($0.text)" }.joined(separator: ", ") + "}"
  }

  /// Returns a JSON string.
  static func quoted(_ text: String) -> String {
    var json = JSONWriter(.compact)
    json.string(text)
    return String(decoding: json.bytes, as: UTF8.self)
  }
}
