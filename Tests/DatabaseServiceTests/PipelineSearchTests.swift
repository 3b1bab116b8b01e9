import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// The stage `search`: its results, which an index never changes, and the plan.
@Suite struct PipelineSearchTests {
  private static let text = textIndex(["title", "tags"])

  private static func textIndex(
    _ fields: [String], of id: String = "posts", _ language: TextLanguage = .english, group: Bool = false
  ) -> IndexConfiguration {
    IndexConfiguration(indexes: [
      IndexDefinition(
        collectionID: id, scope: group ? .collectionGroup : .collection,
        fields: fields.map { .init(field($0), .text(language)) })
    ])
  }

  private static func search(
    _ query: PipelineArgument, of source: PipelineCall = .collection("posts"),
    _ options: PipelineArgument.Entry...
  ) -> [PipelineCall] {
    [source, PipelineCall("search", [], options: [PipelineArgument.Entry("query", query)] + options)]
  }

  private static func matching(_ text: String) -> PipelineArgument { .call("document_matches", .text(text)) }

  private static let group = PipelineCall("collection_group", [.path(""), .text("posts")])

  /// Sets indexes, and waits until they are built.
  private static func set(_ indexes: IndexConfiguration, _ fixture: ServiceFixture) throws {
    try fixture.database.setIndexes(indexes)
    while try fixture.database.indexReports().contains(where: { $0.state == .building || $0.state == .removing }) {
      try fixture.commit(.set("other/wait"))
    }
  }

  private static func plan(_ stages: [PipelineCall], _ fixture: ServiceFixture) throws -> String {
    let mode = PipelineArgument.entries([PipelineArgument.Entry("mode", .text("explain"))])
    let request = ExecutePipelineRequest(
      StructuredPipeline(stages, options: [PipelineArgument.Entry("explain_options", mode)]))
    let cursor = try fixture.service.executePipeline(request, in: fixture.id, as: ServiceFixture.admin)
    while !cursor.isAtEnd { try cursor.slice { _ in true } }
    return try #require(cursor.explanation)
  }

  /// Results come with the newest document first.
  private static let rows: [(text: String, found: String)] = [
    ("taco", "d b a"), ("Tacos", "d b a"), ("taco bean", "b"), ("beans tacos", "b"), ("taco -bean", "d a"),
    (#""taco stand""#, "a"), (#"-"taco stand" tacos"#, "d b"), (#""stand taco""#, ""), ("red", "d"), ("missing", ""),
    ("taco missing", ""), ("well-known", "e"), ("known-well", ""), (#""hot red""#, ""), ("hot red", "d"),
    ("  -  taco ", "d b a"), (#""taco stand"#, "a"), ("TACO, BEAN!", "b"), ("ÉTÉ", "e"),
  ]

  private static func fixture() throws -> ServiceFixture {
    let fixture = try ServiceFixture()
    for (id, title, tags) in [
      ("a", "The taco stand", ["green"]), ("b", "Beans <b>and</b> tacos", []), ("c", "Nothing here", ["blue"]),
      ("d", "Tacos, tacos", ["hot", "red"]), ("e", "A well-known été", []),
    ] as [(String, String, [Value])] {
      try fixture.commit(.set("posts/\(id)", ("title", .string(title)), ("tags", .array(tags)), ("n", 1)))
    }
    return fixture
  }

  @Test func resultsAreTheSameWithAndWithoutAnIndex() throws {
    let fixture = try Self.fixture()
    for indexes in [nil, Self.text, Self.textIndex(["tags", "title"], group: true)] {
      if let indexes { try Self.set(indexes, fixture) }
      for (text, found) in Self.rows {
        let expected = found.split(separator: " ").map { "posts/\($0)" }
        #expect(try fixture.paths(of: Self.search(Self.matching(text))) == expected, "\(text)")
        #expect(try fixture.paths(of: Self.search(Self.matching(text), of: Self.group)) == expected, "group: \(text)")
      }
    }
  }

  @Test func planShowsTheIndex() throws {
    let fixture = try Self.fixture()
    let stages = Self.search(Self.matching("Tacos \"hot beans\" -red"))
    #expect(try Self.plan(stages, fixture).contains("scan names of posts"))
    try Self.set(Self.text, fixture)
    let plan = try Self.plan(stages, fixture)
    #expect(
      plan.contains("intersect index posts (title text in en, tags text in en): taco and hot and bean")
        && plan.contains("matches of search"), "\(plan)")
    let german = Self.search(Self.matching("Tacos"), PipelineArgument.Entry("language_code", .text("de")))
    #expect(try Self.plan(german, fixture).contains("scan names of posts"))
    #expect(try Self.plan(Self.search(Self.matching("a"), of: Self.group), fixture).contains("scan names of **/posts"))
    try Self.set(Self.textIndex(["title"], group: true), fixture)
    let grouped = try Self.plan(Self.search(Self.matching("tacos"), of: Self.group), fixture)
    #expect(grouped.contains("scan index group of posts (title text in en): taco"), "\(grouped)")
    // A query does not read the entries of a text index.
    let equal: [PipelineCall] = [
      .collection("posts"), .matching(.call("equal", .field("title"), .text("Tacos, tacos"))),
    ]
    #expect(try fixture.paths(of: equal) == ["posts/d"])
  }

  /// If a text index is declared, only its fields count, also while it is built, or in another language.
  @Test func theIndexChoosesTheFields() throws {
    let mayBuild = Observed(true)
    let fixture = try ServiceFixture { _, _ in _ = mayBuild.wait { $0 } }
    try fixture.commit(.set("posts/a", ("title", "tacos"), ("body", "beans")))
    try fixture.commit(.set("posts/b", ("title", "beans"), ("body", "tacos")))
    let stages = Self.search(Self.matching("taco"))
    #expect(try fixture.paths(of: stages) == ["posts/b", "posts/a"])
    mayBuild.value = false
    try fixture.database.setIndexes(Self.textIndex(["title"]))
    #expect(try fixture.paths(of: stages) == ["posts/a"])
    #expect(try Self.plan(stages, fixture).contains("scan names"))
    mayBuild.value = true
    try Self.set(Self.textIndex(["title"]), fixture)
    #expect(try fixture.paths(of: stages) == ["posts/a"])
    #expect(try Self.plan(stages, fixture).contains("scan index"))
    let plain = Self.search(Self.matching("taco"), PipelineArgument.Entry("language_code", .text("pl")))
    #expect(try fixture.paths(of: plain).isEmpty)
    try Self.set(IndexConfiguration(), fixture)
    #expect(try fixture.paths(of: stages) == ["posts/b", "posts/a"])
  }

  /// Stems are those of the index's language, or of the request.
  @Test func languagesHaveTheirStems() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("posts/a", ("title", "Die Häuser")), .set("posts/b", ("title", "das Haus")))
    let german = PipelineArgument.Entry("language_code", .text("de-AT"))
    #expect(try fixture.paths(of: Self.search(Self.matching("haus"))) == ["posts/b"])
    #expect(try fixture.paths(of: Self.search(Self.matching("haus"), german)).count == 2)
    let indexed = Self.textIndex(["title"], try #require(TextLanguage(tag: "de")))
    try Self.set(indexed, fixture)
    #expect(try fixture.paths(of: Self.search(Self.matching("haus"))).count == 2)
    let english = PipelineArgument.Entry("language_code", .text("en"))
    #expect(try fixture.paths(of: Self.search(Self.matching("haus"), english)) == ["posts/b"])
  }

  /// Distances and a text in one query.
  @Test func textAndDistanceAreCombined() throws {
    let fixture = try ServiceFixture()
    func set(_ id: String, _ title: String, _ longitude: Double) throws {
      let point = Value.geoPoint(GeoPoint(latitude: 0, longitude: longitude))
      try fixture.commit(.set("posts/\(id)", ("title", .string(title)), ("at", point)))
    }
    try set("a", "tacos", 0)
    try set("b", "tacos", 1)
    try set("c", "beans", 0)
    try Self.set(Self.textIndex(["title"]), fixture)
    let origin = PipelineArgument.constant(.geoPoint(GeoPoint(latitude: 0, longitude: 0)))
    let near = PipelineArgument.call("less_than_or_equal", .call("geo_distance", .field("at"), origin), .int(1000))
    #expect(try fixture.paths(of: Self.search(near)) == ["posts/c", "posts/a"])
    #expect(try fixture.paths(of: Self.search(.call("and", near, Self.matching("taco")))) == ["posts/a"])
    #expect(try fixture.paths(of: Self.search(.call("and", near, near))) == ["posts/c", "posts/a"])
    for mistake in [
      PipelineArgument.call("and"), .call("and", Self.matching("a"), Self.matching("b")), .call("or", near, near),
      .call("document_matches"), .call("document_matches", .int(1)), Self.matching(" -x"), Self.matching(""),
      Self.matching("..."), Self.matching(String(repeating: "a ", count: 101)),
      Self.matching("\"" + String(repeating: "a ", count: 201)), .text("x"),
    ] {
      let failure = fixture.failure { _ = try fixture.paths(of: Self.search(mistake)) }
      #expect(failure?.code == .invalidArgument && failure?.message.contains("query") == true, "\(mistake)")
    }
  }

  /// Random documents and searches, with writes between the slices, have the results of a model.
  @Test(arguments: 1...6) func randomSearchesMatchAModel(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let words = ["red", "green", "blue", "hot", "cold"]
    let fixture = try ServiceFixture()
    func sentence(_ count: Int) -> [String] { (0..<count).map { _ in random.pick(words) } }
    var model: [String: [String]] = [:]
    func write(_ id: String) throws {
      guard !random.chance(oneIn: 6) else {
        model[id] = nil
        try fixture.commit(.delete("posts/\(id)"))
        return
      }
      let text = sentence(random.pick([0, 1, 2, 4, 9]))
      model[id] = text
      try fixture.commit(.set("posts/\(id)", ("title", .string(text.joined(separator: random.pick([" ", ", "]))))))
    }
    if seed.isMultiple(of: 2) { try Self.set(Self.textIndex(["title"]), fixture) }
    for round in 0..<60 {
      for _ in 0..<5 { try write("p\(Int.random(in: 0..<40, using: &random))") }
      if round == 30 {
        try Self.set(seed.isMultiple(of: 2) ? IndexConfiguration() : Self.textIndex(["title"]), fixture)
      }
      let wanted = sentence(random.pick([1, 1, 2, 3]))
      let phrase = sentence(random.pick([0, 0, 2]))
      let excluded = sentence(random.pick([0, 1]))
      func contains(_ text: [String], _ phrase: [String]) -> Bool {
        phrase.isEmpty || text.indices.contains { Array(text[$0...].prefix(phrase.count)) == phrase }
      }
      let expected = model.filter { _, text in
        wanted.allSatisfy(text.contains) && contains(text, phrase) && !excluded.contains(where: text.contains)
      }
      var query = wanted.joined(separator: " ")
      if !phrase.isEmpty { query += " \"\(phrase.joined(separator: " "))\"" }
      for word in excluded { query += " -\(word)" }
      let stages = Self.search(Self.matching(query))
      let paths = try fixture.paths(of: stages)
      #expect(Set(paths) == Set(expected.keys.map { "posts/\($0)" }), "seed \(seed): \(query)")
      #expect(paths.count == expected.count, "seed \(seed): \(query)")
    }
  }

  /// A long search shows one version, although documents change between its slices.
  @Test(arguments: [false, true]) func slicesShowOneVersion(isIndexed: Bool) throws {
    let fixture = try ServiceFixture()
    let long = String(repeating: "filler words ", count: 800)
    for number in 0..<30 { try fixture.commit(.set("posts/p\(number)", ("title", .string(long + "taco")))) }
    if isIndexed { try Self.set(Self.textIndex(["title"]), fixture) }
    let request = ExecutePipelineRequest(StructuredPipeline(Self.search(Self.matching("taco"))))
    let cursor = try fixture.service.executePipeline(request, in: fixture.id, as: ServiceFixture.admin)
    var found = 0
    var slices = 0
    while !cursor.isAtEnd {
      try cursor.slice { _ in
        found += 1
        return true
      }
      slices += 1
      // Documents stop to match, disappear, and begin to match.
      if slices < 25 {
        try fixture.commit(
          .set("posts/p\(29 - slices)", ("title", "beans")), .delete("posts/p\(slices)"),
          .set("posts/new\(slices)", ("title", "taco")))
      }
    }
    #expect(found == 30)
    #expect(slices > 5)
  }

  /// Rules apply to a search as to any other source.
  @Test func rulesApplyToSearches() throws {
    let fixture = try ServiceFixture(
      rules: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /open/{id} { allow read: if request.auth != null; }
            match /notes/{id} { allow read: if resource.data.owner == request.auth.uid; }
          }
        }
        """)
    try fixture.commit(.set("open/a", ("t", "taco")), .set("notes/a", ("owner", "ann"), ("t", "taco")))
    try fixture.database.setIndexes(
      IndexConfiguration(
        indexes: Self.textIndex(["t"], of: "open").indexes + Self.textIndex(["t"], of: "notes").indexes))
    try fixture.commit(.set("other/wait"))
    let open = Self.search(Self.matching("taco"), of: .collection("open"))
    #expect(try fixture.paths(of: open, as: ServiceFixture.ann) == ["open/a"])
    fixture.expectDenied(to: [ServiceFixture.stranger]) { _ = try fixture.paths(of: open, as: $0) }
    // The text does not prove who the owner is.
    let notes = Self.search(Self.matching("taco"), of: .collection("notes"))
    #expect(try fixture.paths(of: notes) == ["notes/a"])
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) { _ = try fixture.paths(of: notes, as: $0) }
  }

  /// The length of a text is checked before it is divided into parts, of which those without words cost time too.
  @Test func textIsLimited() throws {
    let fixture = try Self.fixture()
    let parts = String(repeating: "! ", count: 8000)
    #expect(try fixture.paths(of: Self.search(Self.matching("taco " + parts))).count == 3)
    let failure = fixture.failure {
      _ = try fixture.paths(of: Self.search(Self.matching("taco " + String(repeating: "! ", count: 8192))))
    }
    #expect(
      failure
        == Status(
          .invalidArgument, "Stage 2 (search): query: the text of document_matches is longer than 16384 bytes."))
  }
}
