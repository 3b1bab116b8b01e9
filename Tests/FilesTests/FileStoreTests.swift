import ContentSharing
import Files
import Foundation
import Testing

@Suite struct FileStoreTests {
  @Test func storesAnObject() throws {
    let files = try TestFiles()
    let object = try files.put("a/b", "hello")
    #expect(try files.text("a/b") == "hello")
    #expect(try files.store.object(TestFiles.name("a/b")) == object)
    #expect(object.metageneration == 1)
    try files.reopen()
    #expect(try files.store.object(TestFiles.name("a/b")) == object)
    #expect(try files.text("a/b") == "hello")
  }

  @Test func equalContentIsStoredOnce() throws {
    let files = try TestFiles()
    try files.put("a", "same")
    try files.put("b", "same")
    #expect(files.files.count == 1)
    try files.store.delete(TestFiles.name("a"))
    #expect(try files.text("b") == "same")
    _ = try files.store.copy(TestFiles.name("b"), to: TestFiles.name("c")) { _ in }
    try files.put("b", "other")
    #expect(files.files.count == 2)
    try files.store.delete(TestFiles.name("c"))
    try files.store.delete(TestFiles.name("b"))
    #expect(files.files.isEmpty)
    #expect(throws: FilesError.noSuchObject(TestFiles.name("b"))) { try files.store.delete(TestFiles.name("b")) }
  }

  @Test func generationsGrowAndConditionsHold() throws {
    let files = try TestFiles()
    var mustNotExist = ObjectConditions()
    mustNotExist.generationMatch = 0
    let first = try files.put("a", "1", mustNotExist)
    #expect(throws: FilesError.conditionNotMet("ifGenerationMatch")) { try files.put("a", "2", mustNotExist) }
    #expect(try files.text("a") == "1")
    var same = ObjectConditions()
    same.generationMatch = first.generation
    let second = try files.put("a", "2", same)
    #expect(second.generation > first.generation)
    let changed = try files.store.update(TestFiles.name("a")) { $0.contentType = "text/plain" }
    #expect(changed.generation == second.generation && changed.metageneration == 2)
    #expect(files.files.count == 1, "rejected and replaced content is gone")
  }

  @Test func wrongChecksumLeavesNothing() throws {
    let files = try TestFiles()
    var declared = DeclaredChecksums()
    declared.crc32c = "AAAAAA=="
    #expect(throws: FilesError.checksumMismatch(kind: "CRC32C", declared: "AAAAAA==", found: "mnG7TA==")) {
      _ = try files.store.put(
        TestFiles.name("a"), files.incoming(Array("hello".utf8)), ObjectAttributes(), declared: declared)
    }
    #expect(try files.store.object(TestFiles.name("a")) == nil)
    #expect(files.files.isEmpty)
  }

  @Test func deniedWriteLeavesNothing() throws {
    let files = try TestFiles()
    #expect(throws: FilesError.denied("no")) {
      _ = try files.store.put(TestFiles.name("a"), files.incoming([1]), ObjectAttributes()) {
        (before, after) throws(FilesError) in
        #expect(before == nil && after?.content.size == 1)
        throw .denied("no")
      }
    }
    #expect(files.files.isEmpty)
  }

  @Test func downloadTokenChecksReplacedObjects() throws {
    let files = try TestFiles()
    let name = TestFiles.name("a")
    func add(_ checked: StoredObject, _ error: FilesError? = nil) throws -> (object: StoredObject?, asked: [Int64?]) {
      var asked: [Int64?] = []
      do throws(FilesError) {
        let object = try files.store.addDownloadToken(to: checked) { (found, isReplaced) throws(FilesError) in
          guard isReplaced else { return }
          asked.append(found?.generation)
          if let error { throw error }
        }
        return (object, asked)
      } catch {
        return (nil, asked)
      }
    }
    let first = try files.put("a", "first")
    // The object has not changed.
    let given = try add(first)
    #expect(given.asked == [] && given.object?.attributes.metadata.downloadTokens.count == 1)
    let second = try files.put("a", "second")
    #expect(try add(first, .denied("no")) == (nil, [second.generation]))
    #expect(try files.store.object(name)?.attributes.metadata.downloadTokens == [])
    // For the rules, a change of the metadata makes another object.
    let changed = try files.store.update(name) { (attributes) throws(FilesError) in attributes.contentType = "a/b" }
    #expect(try add(second, .denied("no")) == (nil, [second.generation]))
    #expect(try add(second).asked == [changed.generation])
    #expect(try files.store.object(name)?.attributes.metadata.downloadTokens.count == 1)
    try files.store.delete(name)
    #expect(try add(changed, .denied("no")) == (nil, [nil]))
    #expect(throws: FilesError.noSuchObject(name)) {
      try files.store.addDownloadToken(to: changed) { (_, _) throws(FilesError) in }
    }
  }

  @Test func canonicallyEquivalentNamesAreDistinct() throws {
    let files = try TestFiles()
    try files.put("\u{e9}", "composed")
    try files.put("e\u{301}", "decomposed")
    #expect(try files.text("\u{e9}") == "composed")
    #expect(try files.text("e\u{301}") == "decomposed")
    #expect(TestFiles.name("\u{e9}") != TestFiles.name("e\u{301}"))
  }

  @Test(arguments: ["", ".", "..", "a\nb", "a\rb", "a\0b", String(repeating: "x", count: 1025)])
  func refusesBadNames(name: String) {
    #expect(throws: FilesError.self) { try ObjectName(checking: "b", name) }
  }

  @Test(arguments: ["", "a/b", "../x", "a b", "-a", "a-", String(repeating: "x", count: 223)])
  func refusesBadBuckets(bucket: String) {
    #expect(throws: FilesError.invalidBucket(bucket)) { try ObjectName(checking: bucket, "n") }
  }

  @Test func refusesUnknownBuckets() throws {
    let files = try TestFiles(makesBuckets: false)
    #expect(throws: FilesError.noSuchBucket("b")) { try files.put("a", "1") }
    _ = try files.store.makeBucket("b")
    try files.put("a", "1")
    #expect(throws: FilesError.bucketNotEmpty("b")) { try files.store.deleteBucket("b") }
    try files.store.delete(TestFiles.name("a"))
    try files.store.deleteBucket("b")
    #expect(try files.store.bucket("b") == nil)
  }

  // MARK: - Lists

  @Test func listsFoldersPagesAndRanges() throws {
    let files = try TestFiles()
    for name in ["a", "a/1", "a/2", "a/b/3", "a0", "b/1", "c"] { try files.put(name, "x") }
    try files.put("z", "x", bucket: "b2")
    func list(_ change: (inout ObjectListing) -> Void) throws -> String {
      var listing = ObjectListing(bucket: "b")
      change(&listing)
      var pages: [String] = []
      repeat {
        let page = try files.store.list(listing)
        pages.append((page.objects.map(\.name.name) + page.prefixes.map { "(\($0))" }).joined(separator: " "))
        listing.pageToken = page.nextPageToken
      } while listing.pageToken != nil
      return pages.joined(separator: " | ")
    }
    #expect(try list { _ in } == "a a/1 a/2 a/b/3 a0 b/1 c")
    #expect(try list { $0.delimiter = "/" } == "a a0 c (a/) (b/)")
    #expect(
      try list {
        $0.delimiter = "/"; $0.prefix = "a/"
      } == "a/1 a/2 (a/b/)")
    #expect(
      try list {
        $0.delimiter = "/"; $0.countMax = 2
      } == "a (a/) | a0 (b/) | c")
    #expect(try list { $0.countMax = 3 } == "a a/1 a/2 | a/b/3 a0 b/1 | c")
    #expect(
      try list {
        $0.start = "a/2"; $0.end = "b"
      } == "a/2 a/b/3 a0")
    #expect(try list { $0.prefix = "nothing" } == "")
  }

  @Test func firebaseListsOmitEmptyParts() throws {
    let files = try TestFiles()
    for name in ["a//b", "a/", "/x", "ok/y", "plain"] { try files.put(name, "x") }
    var listing = ObjectListing(bucket: "b")
    listing.skipsEmptyParts = true
    #expect(try files.store.list(listing).objects.map(\.name.name) == ["ok/y", "plain"])
    listing.delimiter = "/"
    let page = try files.store.list(listing)
    #expect(page.objects.map(\.name.name) == ["plain"])
    #expect(page.prefixes == ["a/", "ok/"])
  }

  // MARK: - Uploads in parts

  @Test func uploadResumesAfterARestart() throws {
    let files = try TestFiles()
    let record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    do {
      let upload = try files.store.openUpload(record.id)
      try Array("hello ".utf8).withUnsafeBytes { try upload.incoming.append($0) }
      try files.store.saveUpload(upload)
      // These bytes are not saved, so they may or may not be on the disk.
      try Array("lost".utf8).withUnsafeBytes { try upload.incoming.append($0) }
      files.store.endUpload(upload)
    }
    #expect(try files.store.object(TestFiles.name("big")) == nil)
    try files.reopen()
    let upload = try files.store.openUpload(record.id)
    #expect(upload.incoming.size == 6)
    #expect(throws: FilesError.uploadBusy) { _ = try files.store.openUpload(record.id) }
    try Array("world".utf8).withUnsafeBytes { try upload.incoming.append($0) }
    let object = try files.store.finishUpload(upload, declared: DeclaredChecksums())
    #expect(try files.text("big") == "hello world")
    #expect(try files.store.upload(record.id).state == .finished(generation: object.generation))
    #expect(throws: FilesError.uploadOver) { _ = try files.store.openUpload(record.id) }
    #expect(files.files.count == 1)
  }

  @Test func cancelledUploadLeavesNothing() throws {
    let files = try TestFiles()
    let record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    #expect(files.files.count == 1)
    try files.store.cancelUpload(files.store.openUpload(record.id))
    #expect(files.files.isEmpty)
    #expect(throws: FilesError.uploadOver) { _ = try files.store.openUpload(record.id) }
    for id in ["", "../../x", String(repeating: "0", count: 32)] {
      #expect(throws: FilesError.noSuchUpload) { _ = try files.store.openUpload(id) }
    }
  }

  // MARK: - After a crash

  @Test func sweepRemovesUnreferencedContent() throws {
    let files = try TestFiles()
    let kept = try files.put("kept", "kept")
    let record = UploadRecord(name: TestFiles.name("part"), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    let orphan = "aa" + String(repeating: "0", count: 62)
    try files.reopen {
      try FileManager.default.createDirectory(
        atPath: files.path + "/content/aa", withIntermediateDirectories: true)
      try Data([1]).write(to: URL(filePath: files.path + "/content/aa/" + orphan.dropFirst(2)))
      try Data([1]).write(to: URL(filePath: files.path + "/incoming/0123"))
    }
    #expect(try files.store.sweep() == 1)
    #expect(
      files.files == [
        "content/" + kept.content.digest.text.prefix(2) + "/" + kept.content.digest.text.dropFirst(2),
        "incoming/" + record.id,
      ])
    #expect(try files.text("kept") == "kept")
  }
}
