import Testing

@testable import Files

/// Buckets that keep replaced and deleted objects as versions.
@Suite struct VersionTests {
  private func versioned() throws -> TestFiles {
    let files = try TestFiles()
    _ = try files.store.makeBucket("b") { $0.keepsVersions = true }
    return files
  }

  private func list(_ files: TestFiles, _ change: (inout ObjectListing) -> Void = { _ in }) throws -> ObjectPage {
    var listing = ObjectListing(bucket: "b")
    listing.includesVersions = true
    change(&listing)
    return try files.store.list(listing)
  }

  private func text(_ files: TestFiles, _ object: StoredObject) throws -> String? {
    guard let found = try files.store.open(object.name, generation: object.generation) else { return nil }
    return TestFiles.read(found.descriptor)
  }

  @Test func replacedObjectsRemainUnderTheirGeneration() throws {
    let files = try versioned()
    let first = try files.put("a", "1")
    let second = try files.put("a", "2")
    #expect(try text(files, first) == "1")
    #expect(try text(files, second) == "2")
    #expect(try files.store.object(first.name, generation: first.generation)?.deleted != nil)
    #expect(try files.store.object(first.name)?.deleted == nil)
    try files.reopen()
    #expect(try files.store.sweep() == 0)
    #expect(try text(files, first) == "1")
    let changed = try files.store.update(first.name, generation: first.generation) { $0.contentLanguage = "en" }
    #expect(changed.deleted != nil)
    #expect(try files.store.object(first.name)?.attributes.contentLanguage == nil)
    _ = try files.store.copy(first.name, generation: first.generation, to: first.name) { _ in }
    #expect(try files.text("a") == "1")
    #expect(try list(files).objects.map(\.generation).prefix(2) == [first.generation, second.generation])
  }

  @Test func onlyADeletedGenerationIsGone() throws {
    let files = try versioned()
    let first = try files.put("a", "1")
    try files.store.delete(first.name)
    #expect(try files.store.object(first.name) == nil)
    #expect(try text(files, first) == "1")
    #expect(throws: FilesError.bucketNotEmpty("b")) { try files.store.deleteBucket("b") }
    let second = try files.put("a", "2")
    try files.store.delete(first.name, generation: first.generation)
    try files.store.delete(first.name, generation: second.generation)
    #expect(throws: FilesError.noSuchObject(first.name)) {
      try files.store.delete(first.name, generation: first.generation)
    }
    #expect(files.files.isEmpty)
    try files.store.deleteBucket("b")
  }

  @Test func listsVersionsInOrderAndPages() throws {
    let files = try versioned()
    for (name, text) in [("a/1", "x"), ("a", "1"), ("b", "1"), ("a", "2"), ("a/1", "y"), ("c", "1"), ("a", "3")] {
      try files.put(name, text)
    }
    try files.store.delete(TestFiles.name("c"))
    let all = try list(files).objects
    #expect(all.map(\.name.name) == ["a", "a", "a", "a/1", "a/1", "b", "c"])
    let check = try FilesCheck(files.store.metadata, files.store.contents)
    #expect(check.problems == [] && check.objects == 7 && check.orphans == 0)
    #expect(try files.store.statistics().objectBytes == 7)
    #expect(all.map { $0.deleted == nil } == [false, false, true, false, true, true, false])
    for count in 1...3 {
      var token: String?
      var paged: [StoredObject] = []
      repeat {
        let page = try list(files) {
          $0.countMax = count
          $0.pageToken = token
        }
        paged += page.objects
        token = page.nextPageToken
      } while token != nil
      #expect(paged == all, "pages of \(count)")
    }
    let folded = try list(files) { $0.delimiter = "/" }
    #expect(folded.prefixes == ["a/"] && folded.objects.map(\.name.name) == ["a", "a", "a", "b", "c"])
    #expect(try files.store.list(ObjectListing(bucket: "b")).objects.map(\.name.name) == ["a", "a/1", "b"])
  }

  @Test func moveIsAtomic() throws {
    let files = try TestFiles()
    let object = try files.put("a", "1")
    var wrong = ObjectConditions()
    wrong.generationMatch = 1
    #expect(throws: FilesError.conditionNotMet("ifGenerationMatch")) {
      try files.store.move(object.name, sourceConditions: wrong, to: TestFiles.name("b"))
    }
    let moved = try files.store.move(object.name, to: TestFiles.name("b"))
    #expect(moved.generation > object.generation)
    #expect(try files.store.object(object.name) == nil)
    #expect(try files.text("b") == "1")
    #expect(throws: FilesError.noSuchObject(object.name)) {
      try files.store.move(object.name, to: TestFiles.name("c"))
    }
    #expect(throws: FilesError.self) { try files.store.move(moved.name, to: moved.name) }
  }

  @Test func composeRemovesItsParts() throws {
    let files = try versioned()
    let (one, two) = (try files.put("1", "one "), try files.put("2", "two"))
    let parts = [ComposedPart(name: "1", generation: one.generation), ComposedPart(name: "2"), ComposedPart(name: "1")]
    var failing = parts
    failing[1].generationMatch = one.generation
    #expect(throws: FilesError.self) {
      try files.store.compose(
        failing, to: TestFiles.name("c"), ObjectAttributes(), conditions: ObjectConditions(), removesParts: true)
    }
    #expect(try files.text("1") == "one ")
    _ = try files.store.compose(
      parts, to: TestFiles.name("2"), ObjectAttributes(), conditions: ObjectConditions(), removesParts: true)
    #expect(try files.text("2") == "one twoone ")
    #expect(try files.store.object(one.name, generation: one.generation) == nil)
    #expect(try text(files, two) == "two")
  }
}
