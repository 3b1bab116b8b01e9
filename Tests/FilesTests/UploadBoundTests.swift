import Foundation
import KeyValue
import Synchronization
import Testing

@testable import Files

/// The limits of what untrusted clients can make a store keep.
@Suite struct UploadBoundTests {
  private func begin(_ files: TestFiles, _ name: String) throws -> String {
    let record = UploadRecord(name: TestFiles.name(name), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    return record.id
  }

  @Test func initiatorsAreKeptUntilTheEnd() throws {
    let files = try TestFiles { $0.uploadsMax = 3 }
    func begin(_ name: String, size: Int? = nil) throws -> String {
      var record = UploadRecord(name: TestFiles.name(name), attributes: ObjectAttributes())
      record.declaredSize = size
      try files.store.beginUpload(record, initiator: name)
      return record.id
    }
    func initiator(_ id: String) -> String? { files.store.initiator(ofUpload: id) as? String }
    let ids = [try begin("a", size: 1), try begin("b"), try begin("c")]
    #expect(ids.map(initiator) == ["a", "b", "c"])
    // An upload without the declared length can continue.
    let short = try files.store.openUpload(ids[0])
    #expect(throws: FilesError.self) { try files.store.finishUpload(short, declared: DeclaredChecksums()) }
    #expect(initiator(ids[0]) == "a")
    try files.store.cancelUpload(files.store.openUpload(ids[0]))
    _ = try files.store.finishUpload(files.store.openUpload(ids[1]), declared: DeclaredChecksums())
    files.clock.advance(seconds: UploadRecord.lifetimeSeconds + 1)
    try files.store.removeOldUploads()
    #expect(ids.compactMap(initiator) == [])
  }

  @Test func theKeyOfAnUploadIsStored() throws {
    let files = try TestFiles()
    var ids: [String: String?] = [:]
    for key in ["k1", nil] {
      var record = UploadRecord(name: TestFiles.name("a"), attributes: ObjectAttributes())
      record.isAdmin = true
      record.keyID = key
      try files.store.beginUpload(record)
      let upload = try files.store.openUpload(record.id)
      try files.store.saveUpload(upload)
      files.store.endUpload(upload)
      ids[record.id] = .some(key)
    }
    try files.reopen()
    for (id, key) in ids {
      #expect(try files.store.upload(id).keyID == key)
      #expect(try files.store.openUpload(id).record.keyID == key)
    }
  }

  /// Records of version 1 end with the owner.
  @Test func recordsWithoutAKeyAreReadable() throws {
    var record = UploadRecord(name: TestFiles.name("a"), attributes: ObjectAttributes())
    record.created = 1
    record.isAdmin = true
    record.owner = .user("ann")
    let old = record.encoded
    let owner: [UInt8] = [16, 4] + "uann".utf8
    #expect(old.suffix(owner.count) == owner[...])
    #expect(old.withUnsafeBytes { UploadRecord(id: record.id, record: $0) } == record)
    // A new record is an old one and one more field, which an older version of the server ignores.
    record.keyID = "k1"
    #expect(record.encoded == old + [17, 2] + "k1".utf8)
    #expect(record.encoded.withUnsafeBytes { UploadRecord(id: record.id, record: $0) } == record)
  }

  @Test func failedOpeningIsRetriedAfterAPause() throws {
    for (pause, expected) in [(Duration.seconds(60), 1), (.zero, 3)] {
      let calls = Atomic<Int>(0)
      let lazy = LazyFileStore(pause: pause) { () throws(FilesError) in
        calls.add(1, ordering: .relaxed)
        throw .full
      }
      for _ in 0..<3 { #expect(throws: FilesError.full) { try lazy.store() } }
      #expect(calls.load(ordering: .relaxed) == expected)
    }
  }

  @Test func limitsActiveUploads() throws {
    let files = try TestFiles { $0.uploadsMax = 3 }
    let ids = try (0..<3).map { try begin(files, "n\($0)") }
    #expect(throws: FilesError.tooManyUploads) { try begin(files, "more") }
    #expect(files.files.count == 3)
    // An upload that has ended makes room.
    try files.store.cancelUpload(files.store.openUpload(ids[0]))
    let fourth = try begin(files, "more")
    #expect(throws: FilesError.tooManyUploads) { try begin(files, "still more") }
    files.clock.advance(seconds: UploadRecord.restSeconds + 1)
    // These two have just been used, so the third is dropped.
    files.store.endUpload(try files.store.openUpload(ids[1]))
    files.store.endUpload(try files.store.openUpload(fourth))
    _ = try begin(files, "after an hour")
    #expect(throws: FilesError.noSuchUpload) { try files.store.openUpload(ids[2]) }
    #expect(files.files.count == 3)
    // The limit also holds after a restart.
    try files.reopen()
    #expect(throws: FilesError.tooManyUploads) { try begin(files, "after a restart") }
  }

  @Test func ownersHaveSeparateQuotas() throws {
    let files = try TestFiles {
      $0.uploadsMax = 6
      $0.uploadsOfOwnerMax = 2
    }
    func begin(_ owner: UploadOwner?) throws -> String {
      var record = UploadRecord(name: TestFiles.name("n"), attributes: ObjectAttributes())
      record.owner = owner
      try files.store.beginUpload(record)
      return record.id
    }
    let (ann, bob) = (UploadOwner.user("ann"), UploadOwner.address("ann"))
    let anns = [try begin(ann), try begin(ann)]
    for _ in 0..<3 { #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(ann) } }
    // A rejected upload leaves no file and uses no quota.
    #expect(files.files.count == 2)
    _ = try (begin(bob), begin(bob))
    #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(bob) }
    // Administrators have no quota of their own, only the total limit.
    _ = try (begin(nil), begin(nil))
    #expect(throws: FilesError.tooManyUploads) { try begin(nil) }
    #expect(throws: FilesError.tooManyUploads) { try begin(.user("cy")) }
    // An upload that has ended makes room, however it ended.
    try files.store.cancelUpload(files.store.openUpload(anns[0]))
    let third = try begin(ann)
    #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(ann) }
    _ = try files.store.finishUpload(files.store.openUpload(third), declared: DeclaredChecksums())
    let fourth = try begin(ann)
    // After a restart the owners are still known, and their uploads count as just used.
    try files.reopen()
    #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(ann) }
    // After an idle hour, the owner's oldest upload is dropped, and no upload of another owner.
    files.clock.advance(seconds: UploadRecord.restSeconds + 1)
    files.store.endUpload(try files.store.openUpload(anns[1]))
    let fifth = try begin(ann)
    #expect(throws: FilesError.noSuchUpload) { try files.store.upload(fourth) }
    #expect(try [anns[1], fifth].map { try files.store.upload($0).state } == [.active, .active])
    #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(ann) }
    // An acquired upload is in use, however long it takes.
    let acquired = try (files.store.openUpload(anns[1]), files.store.openUpload(fifth))
    files.clock.advance(seconds: UploadRecord.restSeconds + 1)
    #expect(throws: FilesError.tooManyUploadsOfOwner(2)) { try begin(ann) }
    files.store.endUpload(acquired.0)
    files.store.endUpload(acquired.1)
  }

  @Test func failedBeginUsesNoQuota() throws {
    let files = try TestFiles(makesBuckets: false) { $0.uploadsOfOwnerMax = 1 }
    var record = UploadRecord(name: TestFiles.name("n"), attributes: ObjectAttributes())
    record.owner = .user("ann")
    for _ in 0..<2 {
      #expect(throws: FilesError.noSuchBucket("b")) { try files.store.beginUpload(record) }
    }
    #expect(files.files.isEmpty)
    // The idle upload that would make room stays if the new one cannot be written.
    files.clock.advance(seconds: -1)
    _ = try files.store.makeBucket("b")
    try files.store.beginUpload(record)
    files.clock.advance(seconds: UploadRecord.restSeconds + 1)
    var other = UploadRecord(name: TestFiles.name("n"), attributes: ObjectAttributes())
    other.owner = .user("ann")
    files.faults.failWrites(.diskFull(path: "x"), times: 1)
    #expect(throws: FilesError.full) { try files.store.beginUpload(other) }
    files.store.endUpload(try files.store.openUpload(record.id))
    #expect(throws: FilesError.tooManyUploadsOfOwner(1)) { try files.store.beginUpload(other) }
  }

  @Test func removesOldUploads() throws {
    let files = try TestFiles()
    let left = try begin(files, "left")
    let ended = try begin(files, "ended")
    _ = try files.store.finishUpload(files.store.openUpload(ended), declared: DeclaredChecksums())
    files.clock.advance(seconds: UploadRecord.lifetimeSeconds - 60)
    let young = try begin(files, "young")
    try files.store.removeOldUploads()
    #expect(files.files.count == 3)
    files.clock.advance(seconds: 120)
    #expect(throws: FilesError.noSuchUpload) { try files.store.upload(left) }
    try files.store.removeOldUploads()
    #expect(files.files.count == 2, "the file of the idle upload is gone")
    files.clock.advance(seconds: -UploadRecord.lifetimeSeconds)
    for id in [left, ended] { #expect(throws: FilesError.noSuchUpload) { try files.store.upload(id) } }
    #expect(try files.store.upload(young).state == .active)
    #expect(try files.store.object(TestFiles.name("ended")) != nil)
  }

  @Test func admitsOneRequestPerUpload() throws {
    let files = try TestFiles()
    let id = try begin(files, "a")
    let upload = try files.store.openUpload(id)
    #expect(throws: FilesError.uploadBusy) { try files.store.openUpload(id) }
    files.store.endUpload(upload)
    files.store.endUpload(try files.store.openUpload(id))
  }

  @Test(arguments: [0, 4, 6])
  func refusesAnotherLengthThanDeclared(declaredSize: Int) throws {
    let files = try TestFiles()
    var record = UploadRecord(name: TestFiles.name("a"), attributes: ObjectAttributes())
    record.declaredSize = declaredSize
    try files.store.beginUpload(record)
    let upload = try files.store.openUpload(record.id)
    try Array("hello".utf8).withUnsafeBytes { try upload.incoming.append($0) }
    #expect(
      throws: FilesError.invalid("The upload was declared with \(declaredSize) bytes, but 5 bytes were received.")
    ) {
      try files.store.finishUpload(upload, declared: DeclaredChecksums())
    }
    #expect(try files.store.object(TestFiles.name("a")) == nil)
    // The upload can continue.
    #expect(try files.store.openUpload(record.id).incoming.size == 5)
  }

  @Test func wrongChecksumsOfEveryKindLeaveNothing() throws {
    let files = try TestFiles()
    var sums: [DeclaredChecksums] = []
    for text in ["", "x", "AAAAAA==", "mnG7TA", "mnG7TA== ", "2cf24dba"] {
      var sum = DeclaredChecksums()
      sum.crc32c = text
      sums.append(sum)
      sum = DeclaredChecksums()
      sum.md5 = text
      sums.append(sum)
      sum = DeclaredChecksums()
      sum.sha256 = text
      sums.append(sum)
    }
    for sum in sums {
      #expect(throws: FilesError.self, "\(sum)") {
        try files.store.put(
          TestFiles.name("a"), files.incoming(Array("hello".utf8)), ObjectAttributes(), declared: sum)
      }
      let record = UploadRecord(name: TestFiles.name("a"), attributes: ObjectAttributes())
      try files.store.beginUpload(record)
      let upload = try files.store.openUpload(record.id)
      try Array("hello".utf8).withUnsafeBytes { try upload.incoming.append($0) }
      #expect(throws: FilesError.self, "\(sum)") { try files.store.finishUpload(upload, declared: sum) }
    }
    #expect(files.files.isEmpty)
    var right = DeclaredChecksums()
    right.crc32c = "mnG7TA=="
    right.md5 = "XUFAKrxLKna5cZ2REBfFkg=="
    right.sha256 = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="
    _ = try files.store.put(
      TestFiles.name("a"), files.incoming(Array("hello".utf8)), ObjectAttributes(), declared: right)
  }

  // MARK: - Memory

  @Test func memoryLimitCountsWholePages() throws {
    let files = try TestFiles(inMemory: 64 << 10)
    // One byte of content takes a page, and the file takes another, so 8 files fill the limit.
    for index in 0..<7 { try files.put("n\(index)", "\(index)") }
    #expect(throws: FilesError.full) { for index in 10..<12 { try files.put("n\(index)", "x\(index)") } }
    let taken = files.store.contents.reservedBytes
    #expect(taken <= 64 << 10)
    // Equal content takes no further space once it is stored, but it does while it arrives.
    try files.store.delete(TestFiles.name("n0"))
    #expect(files.store.contents.reservedBytes == taken - 8192)
    try files.put("again", "1")
    #expect(files.store.contents.reservedBytes == taken - 8192)
    for object in try files.store.list(ObjectListing(bucket: "b")).objects { try files.store.delete(object.name) }
    #expect(files.store.contents.reservedBytes == 0)
    #expect(files.files.isEmpty)
  }

  @Test func uploadsInMemoryReleaseTheirSpace() throws {
    let files = try TestFiles(inMemory: 1 << 20)
    func send(_ bytes: Int) throws -> OpenUpload {
      let upload = try files.store.openUpload(begin(files, "a"))
      try [UInt8](repeating: 1, count: bytes).withUnsafeBytes { try upload.incoming.append($0) }
      return upload
    }
    let kept = try send(100_000)
    #expect(throws: FilesError.full) { _ = try send(1_000_000) }
    files.store.endUpload(kept)
    try files.store.cancelUpload(files.store.openUpload(kept.record.id))
    files.clock.advance(seconds: UploadRecord.lifetimeSeconds + 1)
    try files.store.removeOldUploads()
    #expect(files.store.contents.reservedBytes <= 8192, "\(files.store.contents.reservedBytes)")
  }

  // MARK: - Lists

  @Test func largeMetadataShortensPages() throws {
    let files = try TestFiles()
    var attributes = ObjectAttributes()
    attributes.metadata["k"] = String(repeating: "v", count: ObjectAttributes.metadataBytesMax - 1)
    for index in 0..<600 {
      _ = try files.store.put(TestFiles.name("n\(1000 + index)"), files.incoming([1]), attributes)
    }
    let counts = try files.pageCounts(ObjectListing(bucket: "b"))
    #expect(counts.reduce(0, +) == 600)
    #expect(counts.count == 2 && counts[0] < 520, "\(counts)")
  }
}
