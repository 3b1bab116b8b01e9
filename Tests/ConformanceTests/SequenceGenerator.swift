import TestSupport

/// Generates random sequences of requests on one database.
struct SequenceGenerator {
  private let database: TestDatabase
  private let writer: WriteGenerator

  private init(database: TestDatabase, random: inout SplitMix) {
    self.database = database
    writer = WriteGenerator(database: database, random: &random)
  }

  /// A sequence of about `length` requests. Equal seeds give equal sequences.
  static func sequence(database: TestDatabase, seed: UInt64, length: Int) -> [StepGroup] {
    var random = SplitMix(seed: seed)
    return SequenceGenerator(database: database, random: &random).groups(&random, length: length)
  }

  private func groups(_ random: inout SplitMix, length: Int) -> [StepGroup] {
    var groups: [StepGroup] = random.chance(percent: 70) ? [[population(&random)]] : []
    var commits = 0
    while groups.reduce(0, { $0 + $1.count }) < length {
      let group: StepGroup
      switch random.pick(weighted: [
        (12, 0), (14, 1), (5, 2), (5, 3), (20, 4), (7, 5), (8, 6), (10, 7), (12, 8), (5, 9), (6, 10), (5, 11),
      ]) {
      case 0: group = [get(&random)]
      case 1: group = [patch(&random)]
      case 2: group = [create(&random)]
      case 3: group = [delete(&random)]
      case 4:
        // Sets few variables repeatedly, so that most of them contain the time of a successful commit.
        group = [commit(&random, number: commits % 3)]
        commits += 1
      case 5: group = [batchWrite(&random)]
      case 6: group = [batchGet(&random)]
      case 7: group = [list(&random)]
      case 8: group = [orderedList(&random)]
      case 9: group = [collectionIDs(&random)]
      case 10: group = transaction(&random)
      default: group = [batchGetInThePast(&random)]
      }
      groups.append(group)
    }
    return groups
  }

  // MARK: Single documents

  private func get(_ random: inout SplitMix) -> Step {
    let path = writer.documentPath(&random)
    let mask = random.chance(percent: 25) ? writer.fieldPaths(&random, from: 1) : []
    return Step(
      method: "GET", target: database.url(path) + queryString(mask.map { ("mask.fieldPaths", $0) }),
      captures: [Capture(variable: WriteGenerator.timeVariable(path), path: ["updateTime"])])
  }

  private func patch(_ random: inout SplitMix) -> Step {
    let path = writer.documentPath(&random)
    var query: [(String, String)] = []
    if random.chance(percent: 50) {
      query += writer.fieldPaths(&random, from: 1).map { ("updateMask.fieldPaths", $0) }
    }
    if random.chance(percent: 20) { query += writer.fieldPaths(&random, from: 1).map { ("mask.fieldPaths", $0) } }
    if random.chance(percent: 20) {
      query.append(("currentDocument.exists", random.chance(percent: 60) ? "true" : "false"))
    }
    return Step(
      method: "PATCH", target: database.url(path) + queryString(query),
      body: .json(["fields": writer.values.fields(&random)]),
      captures: [Capture(variable: WriteGenerator.timeVariable(path), path: ["updateTime"])])
  }

  private func create(_ random: inout SplitMix) -> Step {
    let collection = writer.collectionPath(&random)
    let query = [("documentId", random.pick(writer.documentIDs))]
    return Step(
      method: "POST", target: database.url(collection) + queryString(query),
      body: .json(["fields": writer.values.fields(&random)]))
  }

  private func delete(_ random: inout SplitMix) -> Step {
    let query = random.chance(percent: 30) ? [("currentDocument.exists", random.pick(["true", "false"]))] : []
    return Step(method: "DELETE", target: database.url(writer.documentPath(&random)) + queryString(query))
  }

  // MARK: Many documents

  /// A commit of documents that have fields to order by.
  private func population(_ random: inout SplitMix) -> Step {
    let collection = writer.collections[0]
    let paths = writer.documentIDs.map { "\(collection)/\($0)" } + (0..<8).map { "\(collection)/p\($0)" }
    let writes = paths.map { path -> JSONNode in
      let fields: JSONNode = ["a": writer.values.value(&random), "b": writer.values.value(&random)]
      return ["update": ["name": .string(database.name(path)), "fields": fields]]
    }
    return Step(
      method: "POST", target: database.url("", verb: "commit"), body: .json(["writes": .array(writes)]),
      captures: [Capture(variable: "commit 0", path: ["commitTime"])], written: paths.map(database.name))
  }

  private func commit(
    _ random: inout SplitMix, number: Int? = nil, transaction: String? = nil, count: Int? = nil
  ) -> Step {
    // Writes that are rejected for their form leave a transaction open, which keeps its locks in the emulator.
    let writes = writer.writes(&random, count: count ?? random.number(in: 1...5), distinct: transaction != nil)
    var body: [JSONNode.Member] = [.init("writes", .array(writes.map(\.write)))]
    if let transaction { body.append(.init("transaction", .string("${\(transaction)}"))) }
    return Step(
      method: "POST", target: database.url("", verb: "commit"), body: .json(.object(body)),
      captures: number.map { [Capture(variable: "commit \($0)", path: ["commitTime"])] } ?? [],
      written: writes.map { $0.hasComparableTime ? database.name($0.path) : nil },
      expectedDifference: writes.lazy.compactMap(\.expectedDifference).first)
  }

  private func batchWrite(_ random: inout SplitMix) -> Step {
    let writes = writer.writes(&random, count: random.number(in: 1...5), distinct: random.chance(percent: 90))
    return Step(
      method: "POST", target: database.url("", verb: "batchWrite"),
      body: .json(["writes": .array(writes.map(\.write))]),
      written: writes.map { $0.hasComparableTime ? database.name($0.path) : nil })
  }

  private func names(_ random: inout SplitMix, from least: Int = 0) -> JSONNode {
    .array((0..<random.number(in: least...6)).map { _ in .string(database.name(writer.documentPath(&random))) })
  }

  private func batchGet(_ random: inout SplitMix, transaction: String? = nil) -> Step {
    // The emulator responds with 500 to a read of no documents in a transaction.
    var body: [JSONNode.Member] = [.init("documents", names(&random, from: transaction == nil ? 0 : 1))]
    if random.chance(percent: 25) {
      let paths = writer.fieldPaths(&random, from: 0).map { JSONNode.string($0) }
      body.append(.init("mask", ["fieldPaths": .array(paths)]))
    }
    if let transaction { body.append(.init("transaction", .string("${\(transaction)}"))) }
    return Step(method: "POST", target: database.url("", verb: "batchGet"), body: .json(.object(body)))
  }

  /// Reads at the time of an earlier commit, or at a fixed time long ago if that commit failed.
  private func batchGetInThePast(_ random: inout SplitMix) -> Step {
    let variable = "commit \(random.number(below: 3))"
    let body: JSONNode = ["documents": names(&random), "readTime": .string("${\(variable)}")]
    return Step(
      method: "POST", target: database.url("", verb: "batchGet"), body: .json(body),
      expectedDifference: .timeBeforeDatabase)
  }

  // MARK: Lists

  private func list(_ random: inout SplitMix) -> Step {
    // The emulator ignores a mask combined with showMissing.
    let query: [(String, String)] =
      random.chance(percent: 40)
      ? [("showMissing", "true")]
      : random.chance(percent: 30) ? writer.fieldPaths(&random, from: 1).map { ("mask.fieldPaths", $0) } : []
    return Step(
      method: "GET", target: database.url(writer.collectionPath(&random)) + queryString(query),
      reading: .pages(member: "documents", size: random.pick([1, 2, 3, 7, 100])))
  }

  /// A list ordered by one or two fields. Omits `__name__ desc` at the end, which the emulator ignores.
  private func orderedList(_ random: inout SplitMix) -> Step {
    let names = random.chance(percent: 70) ? ["a", "b"] : ["c", "n", "a.a", "b.a", "`p q`", "`é`", "`e\u{301}`"]
    var clauses = random.sample(names, count: random.number(in: 1...2)).map { name in
      name + random.pick(["", " desc", " asc", " DESC"])
    }
    if random.chance(percent: 10) { clauses = ["__name__"] }
    return Step(
      method: "GET",
      target: database.url(random.chance(percent: 70) ? writer.collections[0] : writer.collectionPath(&random))
        + queryString([("orderBy", clauses.joined(separator: random.pick([",", ", "])))]),
      reading: .pages(member: "documents", size: random.pick([1, 2, 3, 7, 100])))
  }

  private func collectionIDs(_ random: inout SplitMix) -> Step {
    // The emulator takes the first colon of a path as the one before the verb.
    let path = writer.documentPath(&random)
    let parent = random.chance(percent: 40) || path.utf8.contains(UInt8(ascii: ":")) ? "" : path
    return Step(
      method: "POST", target: database.url(parent, verb: "listCollectionIds"),
      reading: .pages(member: "collectionIds", size: random.pick([1, 2, 100])))
  }

  // MARK: Transactions

  /// One transaction, from before its start to after its end. No other write happens meanwhile, because the emulator
  /// would wait for locks.
  private func transaction(_ random: inout SplitMix) -> StepGroup {
    let id = "transaction"
    let options = random.pick(["{}", #"{"readOnly":{}}"#, #"{"readWrite":{}}"#])
    let isReadOnly = options.contains("readOnly")
    var group: StepGroup = []
    if random.chance(percent: 60) {
      let body = options == "{}" && random.chance(percent: 50) ? "{}" : #"{"options":\#(options)}"#
      group.append(
        Step(
          method: "POST", target: database.url("", verb: "beginTransaction"), body: .text(body),
          captures: [Capture(variable: id, path: ["transaction"])]))
    } else {
      // In a read, empty options mean read-only.
      let options = options == "{}" ? #"{"readWrite":{}}"# : options
      let documents = names(&random, from: 1).text
      group.append(
        Step(
          method: "POST", target: database.url("", verb: "batchGet"),
          body: .text(#"{"documents":\#(documents),"newTransaction":\#(options)}"#),
          captures: [Capture(variable: id, path: ["0", "transaction"])]))
    }
    for _ in 0..<random.number(in: 0...3) {
      switch random.number(below: 10) {
      case 0...4: group.append(batchGet(&random, transaction: id))
      case 5...7: group.append(query(&random, transaction: id))
      default: group.append(get(&random))
      }
    }
    if isReadOnly, random.chance(percent: 40) { group.append(commit(&random, transaction: id, count: 1)) }
    group.append(end(&random, transaction: id, isReadOnly: isReadOnly))
    // An ID cannot be used again, whatever the outcome of the transaction.
    for _ in 0..<random.number(in: 0...2) {
      var late =
        random.chance(percent: 50)
        ? batchGet(&random, transaction: id) : commit(&random, transaction: id, count: random.number(in: 0...1))
      late.expectedDifference = .endedTransaction
      group.append(late)
    }
    group.append(rollback(id))
    return group
  }

  /// A query or a count in a transaction, which must not affect the commit.
  private func query(_ random: inout SplitMix, transaction: String) -> Step {
    var query: [JSONNode.Member] = [.init("from", [["collectionId": .string(writer.collections[0])]])]
    if random.chance(percent: 60) {
      query.append(
        .init(
          "where",
          [
            "fieldFilter": [
              "field": ["fieldPath": .string(random.pick(["a", "b"]))],
              "op": .string(random.pick(["EQUAL", "GREATER_THAN"])),
              "value": random.pick([["integerValue": "1"], ["stringValue": "a"], ["booleanValue": true]]),
            ]
          ]))
    }
    if random.chance(percent: 50) { query.append(.init("limit", .number("\(random.number(in: 1...3))"))) }
    let isCount = random.chance(percent: 40)
    let body: JSONNode =
      isCount
      ? [
        "structuredAggregationQuery": [
          "structuredQuery": .object(query), "aggregations": [["alias": "n", "count": [:]]],
        ],
        "transaction": .string("${\(transaction)}"),
      ] : ["structuredQuery": .object(query), "transaction": .string("${\(transaction)}")]
    return Step(
      method: "POST", target: database.url("", verb: isCount ? "runAggregationQuery" : "runQuery"), body: .json(body))
  }

  private func end(_ random: inout SplitMix, transaction: String, isReadOnly: Bool) -> Step {
    if random.chance(percent: 30) { return rollback(transaction) }
    return commit(&random, transaction: transaction, count: isReadOnly ? 0 : random.number(in: 0...4))
  }

  private func rollback(_ transaction: String) -> Step {
    Step(
      method: "POST", target: database.url("", verb: "rollback"),
      body: .json(["transaction": .string("${\(transaction)}")]))
  }
}
