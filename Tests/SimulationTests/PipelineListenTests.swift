import Callers
import DatabaseService
import DocumentModel
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// Listeners that follow pipelines.
@Suite struct PipelineListenTests {
  private let service: SimulatedService

  init() throws { service = try SimulatedService() }

  private static func call(_ name: String, _ arguments: PipelineArgument...) -> PipelineArgument {
    .function(PipelineCall(name, arguments))
  }
  private static func text(_ text: String) -> PipelineArgument { .constant(.string(text)) }
  private static func int(_ number: Int64) -> PipelineArgument { .constant(.integer(number)) }
  private static func collection(_ path: String) -> PipelineCall {
    PipelineCall("collection", [.constant(.reference("/" + path))])
  }
  private static func matching(_ condition: PipelineArgument) -> PipelineCall { PipelineCall("where", [condition]) }
  private static func sort(_ fields: (path: String, isDescending: Bool)...) -> PipelineCall { sort(fields) }
  private static func sort(_ fields: [(path: String, isDescending: Bool)]) -> PipelineCall {
    PipelineCall(
      "sort",
      fields.map { field in
        .entries([
          .init("expression", .field(field.path)),
          .init("direction", text(field.isDescending ? "descending" : "ascending")),
        ])
      })
  }

  private func add(_ id: Int32, _ stages: [PipelineCall], to client: ListeningClient, from token: [UInt8]? = nil) throws
  {
    var target = ListenTarget(id: id, .documents([]))
    target.resumePoint = token.map { .token($0) }
    try client.stream.receive(DecodedListenRequest.pipeline(target, StructuredPipeline(stages)))
  }

  private func expect(
    _ events: String..., by client: ListeningClient, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try client.settle()
    #expect(client.takeEvents() == events, sourceLocation: sourceLocation)
  }

  // MARK: Events

  @Test func aPipelineReportsChangesAndResumes() throws {
    let client = try ListeningClient(service)
    let stages = [
      Self.collection("c"), Self.matching(Self.call("greater_than", .field("a"), Self.int(1))),
      Self.sort(("a", false), ("__name__", false)),
    ]
    try service.commit([
      .set("c/x", ("a", 1)), .set("c/y", ("a", 2)), .set("c/z", ("a", "text")), .set("d/y", ("a", 2)),
    ])
    try add(2, stages, to: client)
    try expect("ADD 2", "c/y +2", "CURRENT 2", "SNAPSHOT", by: client)
    try service.commit([.set("c/x", ("a", 5)), .set("c/y", ("a", 0)), .set("d/y", ("a", 3))])
    try expect("c/x +2", "c/y -2", "SNAPSHOT", by: client)
    let token = try #require(client.snapshot?.token)
    try client.remove(2)
    try service.commit([.delete("c/x"), .set("c/w", ("a", 9))])
    try client.settle()
    _ = client.takeEvents()
    try add(2, stages, to: client, from: token)
    try client.settle()
    #expect(client.takeEvents().sorted() == ["ADD 2", "CURRENT 2", "DELETE c/x 2", "SNAPSHOT", "c/w +2"])
  }

  @Test func aLimitMovesDocumentsInAndOut() throws {
    let client = try ListeningClient(service)
    try service.commit([.set("c/a", ("n", 1)), .set("c/b", ("n", 2)), .set("c/c", ("n", 3)), .set("c/d", ("m", 0))])
    let stages = [
      Self.collection("c"), Self.matching(Self.call("exists", .field("n"))), Self.sort(("n", true)),
      PipelineCall("limit", [Self.int(2)]),
    ]
    try add(2, stages, to: client)
    try expect("ADD 2", "c/c +2", "c/b +2", "CURRENT 2", "SNAPSHOT", by: client)
    try service.commit([.delete("c/c")])
    try expect("DELETE c/c 2", "c/a +2", "SNAPSHOT", by: client)
  }

  @Test func documentsAreFollowedByName() throws {
    let client = try ListeningClient(service)
    try service.commit([.set("c/a", ("n", 1))])
    try add(2, [PipelineCall("documents", [.constant(.reference("/c/a")), .constant(.reference("/c/b"))])], to: client)
    try expect("ADD 2", "c/a +2", "DELETE c/b 2", "CURRENT 2", "SNAPSHOT", by: client)
    try service.commit([.set("c/b")])
    try expect("c/b +2", "SNAPSHOT", by: client)
  }

  @Test func aQueryAndAPipelineOfTheSameFormAreSeparate() throws {
    let client = try ListeningClient(service)
    // A query with an inequality is ordered by its field; a pipeline with a limit alone is ordered by name.
    try service.commit([.set("c/a", ("n", 9)), .set("c/b", ("n", 1))])
    var query = Query(collectionID: "c")
    query.filter = .field(field("n"), .greaterThan, 0)
    query.limit = 1
    try client.add(2, .query(query))
    try add(
      4,
      [
        Self.collection("c"), Self.matching(Self.call("greater_than", .field("n"), Self.int(0))),
        PipelineCall("limit", [Self.int(1)]),
      ], to: client)
    try client.settle()
    #expect(client.states[2]?.documents.keys.map(\.text) == ["c/b"])
    #expect(client.states[4]?.documents.keys.map(\.text) == ["c/a"])
  }

  // MARK: Refusals

  private static let equal = call("equal", .field("a"), int(1))
  private static let contains = call("array_contains", .field("t"), int(1))

  static let refused: [(stages: [PipelineCall], text: String)] = [
    ([], "A pipeline must have at least one stage."),
    ([collection("c"), PipelineCall("where", [])], "Stage 2 (where): The stage takes 1 arguments"),
    (
      [collection("c"), PipelineCall("offset", [int(1)])], "Stage 2 (offset): Listeners follow pipelines of collection,"
    ),
    ([PipelineCall("literals", [.entries([])])], "Stage 1 (literals): Listeners follow pipelines of"),
    (
      [collection("c"), PipelineCall("select", [.entries([.init("a", .field("a"))])])],
      "Stage 2 (select): Listeners follow pipelines of"
    ),
    (
      [collection("c"), PipelineCall("limit", [int(1)]), matching(equal)],
      "Stage 3 (where): Listeners cannot follow a condition after a limit."
    ),
    (
      [collection("c"), sort(("a", false)), PipelineCall("limit", [int(1)])],
      "Stage 2 (sort): A document may lack a, which listeners cannot sort by before a limit. Add where(exists(a))."
    ),
    (
      [collection("c"), matching(call("not_equal", .field("a"), int(1)))],
      "Stage 2 (where): Listeners cannot follow not_equal with these arguments."
    ),
    (
      [collection("c"), matching(call("equal", call("to_lower", .field("a")), text("x")))],
      "Stage 2 (where): Listeners cannot follow equal with these arguments."
    ),
    (
      [collection("c"), matching(call("or", contains, equal))],
      "Stage 2 (where): Listeners can follow array_contains only as the last alternative"
    ),
    (
      [PipelineCall("documents", [.constant(.reference("/c/a"))]), matching(equal)],
      "Stage 2 (where): Listeners follow all documents of the stage documents."
    ),
  ]

  @Test(arguments: refused.indices) func otherPipelinesAreRefused(row: Int) throws {
    let (stages, text) = Self.refused[row]
    let client = try ListeningClient(service)
    try add(2, stages, to: client)
    // Other targets of the stream are not affected.
    try client.add(4, .query(Query(collectionID: "c")))
    try client.settle()
    let cause = try #require(client.causes[2])
    #expect(cause.code == .invalidArgument && cause.message.contains(text), "\(cause.message)")
    #expect(client.states[4]?.isCurrent == true)
  }

  // MARK: Rules

  @Test func rulesMustAllowEveryResultOfTheConditions() throws {
    service.rules.set(
      try Ruleset(
        compiling: """
          rules_version = '2';
          service cloud.firestore { match /databases/{d}/documents {
            match /notes/{id} { allow read: if resource.data.owner == request.auth.uid; }
            match /few/{id} { allow list: if request.query.limit <= 10; }
            match /members/{uid} { allow get; }
            match /rooms/{id} { allow list: if exists(/databases/$(d)/documents/members/$(request.auth.uid)); }
          }}
          """), forDatabase: nil)
    try service.commit([.set("notes/a", ("owner", "ann")), .set("rooms/r"), .set("members/ann"), .set("few/a")])
    let client = try ListeningClient(service, as: .user(RulesAuth(uid: "ann", claims: MapValue([]))))
    try add(
      2, [Self.collection("notes"), Self.matching(Self.call("equal", .field("owner"), Self.text("ann")))], to: client)
    try expect("ADD 2", "notes/a +2", "CURRENT 2", "SNAPSHOT", by: client)
    try add(4, [Self.collection("notes")], to: client)
    try expect("ADD 4", "REMOVE 4 permissionDenied", by: client)
    // Rules cannot see the limit of a pipeline.
    try add(6, [Self.collection("few"), PipelineCall("limit", [Self.int(1)])], to: client)
    try expect("ADD 6", "REMOVE 6 permissionDenied", by: client)
    try add(8, [PipelineCall("documents", [.constant(.reference("/notes/a"))])], to: client)
    try expect("ADD 8", "notes/a +8", "CURRENT 8", "SNAPSHOT", by: client)
    try add(10, [Self.collection("rooms")], to: client)
    try expect("ADD 10", "rooms/r +10", "CURRENT 10", "SNAPSHOT", by: client)
    // The decision is repeated when what it depends on changes.
    try service.commit([.delete("members/ann")])
    try client.settle()
    #expect(client.causes[10]?.code == .permissionDenied)
    #expect(client.states[2]?.isCurrent == true)
  }

  // MARK: Differences

  private func paths(of stages: [PipelineCall]) throws -> Set<String> {
    let cursor = try service.service.executePipeline(
      ExecutePipelineRequest(StructuredPipeline(stages)), in: service.id, as: .admin)
    let root = service.id.documentsRoot.utf8.count + 1
    var paths: Set<String> = []
    while !cursor.isAtEnd {
      try cursor.slice { row in
        if let name = row.name { paths.insert(String(decoding: name.dropFirst(root), as: UTF8.self)) }
        return true
      }
    }
    return paths
  }

  /// A listener of a pipeline has the documents that executing the pipeline finds, after every commit.
  @Test(arguments: 1...8) func listenersHaveTheRowsOfTheirPipelines(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed &* 17)
    var random = SplitMix(seed: seed)
    for (path, fields) in generator.documents() {
      try service.commit([Write(.update(EncodedFields(fields), mask: nil), key: DocumentKey(uncheckedPath: path))])
    }
    let client = try ListeningClient(service)
    var followed: [Int32: [PipelineCall]] = [:]
    var refusals = 0
    for id in Int32(1)...60 {
      let stages = Self.randomStages(&generator, &random)
      try add(id, stages, to: client)
      try client.settle()
      if client.causes[id] == nil { followed[id] = stages } else { refusals += 1 }
      #expect(client.causes[id].map { $0.code == .invalidArgument } ?? true, "seed \(seed): \(stages)")
    }
    #expect(followed.count > 10 && refusals > 0, "seed \(seed): \(followed.count) followed, \(refusals) refused")
    for round in 0..<12 {
      if round > 0 {
        let changes = generator.documents().shuffled(using: &random).prefix(4)
        for (path, fields) in changes {
          let isDeletion = random.chance(oneIn: 4)
          try service.commit([
            Write(
              isDeletion ? .delete : .update(EncodedFields(fields), mask: nil), key: DocumentKey(uncheckedPath: path))
          ])
        }
      }
      try client.settle()
      for (id, stages) in followed {
        let shown = Set((client.states[id]?.documents ?? [:]).keys.map(\.text))
        #expect(try shown == paths(of: stages), "seed \(seed), round \(round): \(stages)")
      }
    }
  }

  private static let names: [FieldOperator: String] = [
    .lessThan: "less_than", .lessThanOrEqual: "less_than_or_equal", .greaterThan: "greater_than",
    .greaterThanOrEqual: "greater_than_or_equal", .equal: "equal", .notEqual: "not_equal",
    .arrayContains: "array_contains", .in: "equal_any", .arrayContainsAny: "array_contains_any",
    .notIn: "not_equal_any",
  ]

  /// Makes a pipeline with the conditions and fields of a random query. Its meaning is often another.
  private static func randomStages(_ generator: inout QueryGenerator, _ random: inout SplitMix) -> [PipelineCall] {
    let query = generator.query()
    var stages: [PipelineCall]
    switch (query.collectionID, query.includesDescendants) {
    case (let id?, false): stages = [collection(query.parent.appending(id).text)]
    case (let id?, true):
      let root = query.parent.isRoot ? "" : "/" + query.parent.text
      stages = [PipelineCall("collection_group", [.constant(.reference(root)), text(id)])]
    default: stages = [PipelineCall("database")]
    }
    if let filter = query.filter { stages.append(matching(condition(filter, &random))) }
    let fields = query.orders.map { (path: $0.path.text, isDescending: $0.isDescending) }
    for field in fields where field.path != "__name__" && !random.chance(oneIn: 5) {
      stages.append(matching(call("exists", .field(field.path))))
    }
    if !fields.isEmpty { stages.append(sort(fields)) }
    if random.chance(oneIn: 2) { stages.append(PipelineCall("limit", [int(Int64.random(in: 0...6, using: &random))])) }
    if random.chance(oneIn: 8) { stages.append(sort(("__name__", true))) }
    return stages
  }

  private static func condition(_ filter: QueryFilter, _ random: inout SplitMix) -> PipelineArgument {
    switch filter {
    case .and(let filters): .function(PipelineCall("and", filters.map { condition($0, &random) }))
    case .or(let filters): .function(PipelineCall("or", filters.map { condition($0, &random) }))
    case .unary(let path, let op):
      switch op {
      case .isNull: call("equal", .field(path.text), .constant(.null))
      case .isNaN: call("equal", .field(path.text), .constant(.double(.nan)))
      case .isNotNull:
        call("and", call("exists", .field(path.text)), call("not", call("equal", .field(path.text), .constant(.null))))
      case .isNotNaN: call("not_equal", .field(path.text), .constant(.double(.nan)))
      }
    case .field(let path, let op, let value):
      random.chance(oneIn: 3)
        ? call("and", call(names[op] ?? "", .field(path.text), .constant(value)), call("exists", .field(path.text)))
        : call(names[op] ?? "", .field(path.text), .constant(value))
    }
  }
}
