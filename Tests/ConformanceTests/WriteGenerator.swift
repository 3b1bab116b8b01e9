import TestSupport

/// Generates paths, masks, preconditions, transforms and writes.
struct WriteGenerator {
  let database: TestDatabase
  let values: ValueGenerator

  /// The few names that the requests of one sequence share, so that they concern the same documents.
  let collections: [String]
  let subcollections: [String]
  let documentIDs: [String]

  init(database: TestDatabase, random: inout SplitMix) {
    self.database = database
    values = ValueGenerator(database: database, random: &random)
    collections = ["c", random.pick(["d é", "7", "C", "c\u{0}"])]
    subcollections = ["s", random.pick(["t", "c"])]
    documentIDs = ["a"] + random.sample(Self.documentIDPool, count: 6)
  }

  static let documentIDPool = [
    "b", "A", "Aa", "12", "7", "__id7__", "__id12__", "__id-2__", "__id1_", "_id1__", "é", "e\u{301}", "😀", "\u{FFEE}",
    "z z", "a+b", "a:b", "a:commit", "%41", "a\u{0}b", String(repeating: "x", count: 1500),
  ]

  // MARK: Paths

  /// The path of a document in one of few collections: usually at the root, sometimes below a document that may not
  /// exist.
  func documentPath(_ random: inout SplitMix) -> String {
    var path = "\(random.pick(collections))/\(random.pick(documentIDs))"
    while random.chance(percent: 25), path.utf8.count < 1000 {
      path += "/\(random.pick(subcollections))/\(random.pick(["a", "__id7__", "é", "k"]))"
    }
    return path
  }

  func collectionPath(_ random: inout SplitMix) -> String {
    random.chance(percent: 65)
      ? random.pick(collections) : "\(documentPath(&random))/\(random.pick(subcollections))"
  }

  // MARK: Masks

  /// A field path in the API's notation, quoted if necessary, and sometimes if not.
  func fieldPath(_ random: inout SplitMix) -> String {
    var segments = [random.pick(values.fieldNames)]
    while random.chance(percent: 30) { segments.append(random.pick(values.fieldNames)) }
    return segments.map { segment in
      let isSimple =
        segment.utf8.first != UInt8(ascii: "1")
        && segment.utf8.allSatisfy { byte in
          (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
        }
      if isSimple, random.chance(percent: 90) { return segment }
      var quoted = "`"
      for scalar in segment.unicodeScalars {
        if scalar == "`" || scalar == "\\" { quoted += "\\" }
        quoted.unicodeScalars.append(scalar)
      }
      return quoted + "`"
    }.joined(separator: ".")
  }

  func fieldPaths(_ random: inout SplitMix, from least: Int) -> [String] {
    (0..<random.number(in: least...3)).map { _ in fieldPath(&random) }
  }

  // MARK: Writes

  /// A write, and the facts that a test needs about it.
  struct Generated {
    var write: JSONNode
    var path: String
    /// Whether the time in its result can be compared.
    var hasComparableTime = true
    var expectedDifference: KnownDifference?
  }

  /// One write. If `path` is not `nil`, writes that document, which an earlier write of the same commit changed.
  func write(_ random: inout SplitMix, again path: String? = nil) -> Generated {
    let isAgain = path != nil
    let path = path ?? documentPath(&random)
    let name = JSONNode.string(database.name(path))
    var members: [JSONNode.Member] = []
    var generated = Generated(write: .null, path: path)
    switch random.pick(weighted: [(30, 0), (25, 1), (15, 2), (15, 3), (15, 4), (isAgain ? 0 : 8, 5)]) {
    case 0:
      members = [.init("update", ["name": name, "fields": values.fields(&random)])]
    case 1:
      members = [
        .init("update", ["name": name, "fields": values.fields(&random)]),
        .init("updateMask", ["fieldPaths": .array(fieldPaths(&random, from: 0).map { .string($0) })]),
      ]
    case 2:
      members = [
        .init("update", ["name": name, "fields": values.fields(&random)]),
        .init("updateTransforms", transforms(&random)),
      ]
      if random.chance(percent: 60) {
        let paths = fieldPaths(&random, from: 0).map { JSONNode.string($0) }
        members.append(.init("updateMask", ["fieldPaths": .array(paths)]))
      }
    case 3:
      members = [.init("transform", ["document": name, "fieldTransforms": transforms(&random)])]
    case 4:
      members = [.init("delete", name)]
    default:
      members = [.init("verify", name)]
      generated.hasComparableTime = false
    }
    let isVerify = !generated.hasComparableTime
    if isVerify || random.chance(percent: 25) {
      members.append(.init("currentDocument", precondition(&random, path: path)))
      if isAgain { generated.expectedDifference = .preconditionAfterOwnWrite }
    }
    generated.write = .object(members)
    return generated
  }

  /// The writes of one commit, sometimes with several writes of a document.
  func writes(_ random: inout SplitMix, count: Int, distinct: Bool) -> [Generated] {
    var result: [Generated] = []
    while result.count < count {
      if !distinct, let earlier = result.last, earlier.hasComparableTime, random.chance(percent: 20) {
        result.append(write(&random, again: earlier.path))
        continue
      }
      let next = write(&random)
      guard !result.contains(where: { $0.path.utf8.elementsEqual(next.path.utf8) }) else { continue }
      result.append(next)
    }
    // For each write of a document, the emulator reports the result of all writes of that document.
    for index in result.indices {
      let count = result.count { $0.path.utf8.elementsEqual(result[index].path.utf8) }
      if count > 1 { result[index].hasComparableTime = false }
    }
    return result
  }

  /// The variable for the last known update time of a document.
  static func timeVariable(_ path: String) -> String { "updated \(path)" }

  private func precondition(_ random: inout SplitMix, path: String) -> JSONNode {
    switch random.pick(weighted: [(45, 0), (25, 1), (30, 2)]) {
    case 0: ["exists": true]
    case 1: ["exists": false]
    default: ["updateTime": .string("${\(Self.timeVariable(path))}")]
    }
  }

  /// One to four transforms, no path below another, because the emulator and production reject those.
  private func transforms(_ random: inout SplitMix) -> JSONNode {
    var transforms: [JSONNode] = []
    for name in random.sample(["a", "b", "c", "d", "n"], count: random.number(in: 1...3)) {
      let path = random.chance(percent: 15) ? "\(name).a" : name
      transforms.append(transform(&random, path: path))
      if random.chance(percent: 15) { transforms.append(transform(&random, path: path)) }
    }
    if random.chance(percent: 25) {
      transforms.append(["fieldPath": .string(ValueGenerator.timeField), "setToServerValue": "REQUEST_TIME"])
    }
    return .array(transforms)
  }

  private func transform(_ random: inout SplitMix, path: String) -> JSONNode {
    let path = JSONNode.string(path)
    func elements() -> JSONNode {
      ["values": .array((0..<random.number(in: 0...4)).map { _ in values.value(&random, depth: 1, inArray: true) })]
    }
    switch random.number(below: 5) {
    case 0: return ["fieldPath": path, "increment": values.number(&random)]
    case 1: return ["fieldPath": path, "maximum": values.number(&random)]
    case 2: return ["fieldPath": path, "minimum": values.number(&random)]
    case 3: return ["fieldPath": path, "appendMissingElements": elements()]
    default: return ["fieldPath": path, "removeAllFromArray": elements()]
    }
  }
}
