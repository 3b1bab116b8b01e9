import Callers
import DatabaseService
import Files
import FileService
import RulesEngine
import Synchronization
import Testing
import TestSupport
import WireFormat

/// Resumable uploads, without HTTP.
@Suite struct UploadCallTests {
  @Test func partsContinueWhereTheLastOneEnded() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    #expect(try storage.append(id, "012", at: 0, total: .unknown)?.receivedBytes == 3)
    for start in [0, 2, 4] {
      #expect(
        failure { _ = try storage.append(id, "x", at: start, total: .here) } == .wrongOffset(expected: 3, given: start))
    }
    let progress = try storage.service.queryUpload(id, as: .admin)
    #expect(!progress.isFinal && progress.received == 3)
    // A part without a position has no bytes, and asks for the progress.
    #expect(try storage.append(id, "", at: nil, count: 0, total: .bytes(5))?.receivedBytes == 3)
    #expect(try storage.append(id, "34", at: 3, count: 2, total: .bytes(5))?.object?.content.size == 5)
    #expect(try storage.text("a") == "01234")
    #expect(try storage.service.queryUpload(id, as: .admin).isFinal)
  }

  @Test func finishedUploadRepeatsItsObject() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    let object = try storage.append(id, "text", at: 0, total: .here)?.object
    #expect(failure { _ = try storage.append(id, "text", at: 0, total: .here) } == .uploadOver)
    #expect(try storage.service.repeatUpload(id, as: TestStorage.stranger) == object)
    try storage.put("a", "other")
    #expect(failure { _ = try storage.service.repeatUpload(id, as: .admin) } == .uploadOver)
  }

  @Test func cancelledUploadIsOver() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    try storage.service.cancelUpload(id, as: .admin)
    #expect(failure { _ = try storage.append(id, "text", at: 0, total: .here) } == .uploadOver)
    #expect(failure { _ = try storage.service.repeatUpload(id, as: .admin) } == .uploadOver)
    #expect(failure { try storage.service.cancelUpload(id, as: .admin) } == .uploadOver)
    #expect(failure { try storage.service.cancelUpload("none", as: .admin) } == .noSuchUpload)
  }

  @Test func uploadExpiresAfterAWeek() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    storage.time.advance(seconds: UploadRecord.lifetimeSeconds - 1)
    #expect(try storage.append(id, "0", at: 0, total: .unknown)?.receivedBytes == 1)
    storage.time.advance(seconds: 2)
    #expect(failure { _ = try storage.append(id, "1", at: 1, total: .here) } == .noSuchUpload)
  }

  @Test func interruptedPartKeepsItsBytes() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    let upload = try storage.service.appendUpload(UploadPart(of: id, start: 0, total: .here), as: .admin)
    upload.open()
    #expect(failure { _ = try storage.service.queryUpload(id, as: .admin) } == .uploadBusy)
    upload.append(Array("012".utf8))
    upload.interrupt()
    #expect(try upload.finish() == nil)
    #expect(try storage.service.queryUpload(id, as: .admin).received == 3)
    #expect(try storage.append(id, "34", at: 3, total: .here)?.object?.content.size == 5)
  }

  /// The limit of a part is the smallest of the three lengths.
  @Test(
    arguments: [
      (nil, 2, "The body is longer than Content-Range declares."),
      (3, nil, "The upload is longer than its announced length."),
      (3, 4, "The upload is longer than its announced length."),
      (3, 2, "The body is longer than Content-Range declares."),
    ] as [(Int?, Int?, String)])
  func partIsLimited(announced: Int?, count: Int?, text: String) throws {
    let storage = try TestStorage()
    let id = try storage.begin("a", bytes: announced)
    let error = failure { _ = try storage.append(id, "01234", at: 0, count: count, total: .unknown) }
    #expect(error == .invalid(text))
    // A rejected part ends nothing.
    #expect(try storage.append(id, "012", at: 0, total: .here)?.object?.content.size == 3)
  }

  @Test func uploadLongerThanItsTotalIsRejected() throws {
    let storage = try TestStorage()
    let id = try storage.begin("a")
    let error = failure { _ = try storage.append(id, "0123", at: 0, total: .bytes(3)) }
    #expect(error == .invalid("The upload is longer than the total in Content-Range."))
  }

  @Test func contradictoryChecksumsEndTheUpload() throws {
    let storage = try TestStorage()
    var draft = TestStorage.draft("a")
    draft.declared.md5 = "XUFAKrxLKna5cZ2REBfFkg=="
    let id = try storage.service.beginUpload(draft, owner: nil, as: .admin)
    var other = DeclaredChecksums()
    other.md5 = "x"
    let error = failure { _ = try storage.append(id, "hello", at: 0, total: .here, declared: other) }
    guard case .checksumMismatch? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure { _ = try storage.append(id, "", at: nil, total: .here) } == .uploadOver)
  }

  @Test func rulesAuthorizeTheSenderOfTheLastPart() throws {
    let storage = try TestStorage("allow create: if request.auth.uid == 'ann';")
    let ann = TestStorage.user("ann")
    let ids = try (0..<3).map { try storage.begin("\($0)", as: ann) }
    #expect(try storage.append(ids[0], "text", at: 0, total: .here, as: ann)?.object != nil)
    let error = failure { _ = try storage.append(ids[1], "text", at: 0, total: .here, as: TestStorage.stranger) }
    #expect(error?.isDenied == true)
    #expect(failure { _ = try storage.append(ids[1], "text", at: 0, total: .here, as: ann) } == .uploadOver)
    // Any sender may continue an administrator's upload, because its ID is a secret.
    let own = try storage.begin("own")
    #expect(try storage.append(own, "text", at: 0, total: .here, as: TestStorage.stranger)?.object != nil)
    // The rules may have changed since the upload began.
    try storage.set("allow create: if false;")
    #expect(failure { _ = try storage.append(ids[2], "text", at: 0, total: .here, as: ann) }?.isDenied == true)
  }

  /// A revocation that a test can trigger.
  private final class Revocation: TokenRevocationCheck {
    let isRevoked = Atomic(false)
    var revocationReason: String? { isRevoked.load(ordering: .relaxed) ? "disabled" : nil }
  }

  @Test func unauthenticatedPartsContinueAsTheRememberedCaller() throws {
    let storage = try TestStorage("allow create: if request.auth.uid == 'ann';")
    let revocation = Revocation()
    let ann = TestStorage.user("ann", revocation)
    let first = try storage.begin("a", remembersCaller: true, as: ann)
    let second = try storage.begin("b", remembersCaller: true, as: ann)
    #expect(try storage.append(first, "text", at: 0, total: .here, as: TestStorage.stranger)?.object != nil)
    revocation.isRevoked.store(true, ordering: .relaxed)
    let error = failure { _ = try storage.append(second, "text", at: 0, total: .here, as: TestStorage.stranger) }
    #expect(error == .denied("The user who started the upload may not continue it: disabled."))
  }

  /// The token of a program, whose check reports nothing: only the ID of its key counts.
  private final class KeyToken: TokenRevocationCheck {
    let keyID: String?
    var revocationReason: String? { nil }
    init(_ keyID: String?) { self.keyID = keyID }
  }

  @Test(arguments: [false, true]) func uploadsEndWithTheKeyThatBeganThem(restarts: Bool) throws {
    let storage = try TestStorage("allow create;")
    func begin(_ name: String, _ key: String?) throws -> String {
      try storage.begin(name, as: .administrator(revocationCheck: KeyToken(key)))
    }
    let names = ["first", "second", "none"]
    let ids = [try begin("first", "k1"), try begin("second", "k2"), try begin("none", nil)]
    for id in ids { #expect(try storage.append(id, "012", at: 0, total: .unknown)?.receivedBytes == 3) }
    if restarts { try storage.restart() }
    storage.revokedKeys.update { $0.insert("k1") }
    // It does not matter who sends the next part.
    for caller in [TestStorage.stranger, TestStorage.user("ann"), .admin] {
      let error = failure { _ = try storage.append(ids[0], "34", at: 3, total: .here, as: caller) }
      #expect(error == .denied("The user who started the upload may not continue it: its key was revoked."))
    }
    for (id, name) in zip(ids, names).dropFirst() {
      #expect(try storage.append(id, "34", at: 3, total: .here, as: TestStorage.stranger)?.object != nil)
      #expect(try storage.text(name) == "01234")
    }
    #expect(try storage.text("first") == nil)
  }

  @Test func aKeyThatIsRevokedDuringAPartEndsTheUpload() throws {
    let storage = try TestStorage("allow create;")
    let id = try storage.begin("a", as: .administrator(revocationCheck: KeyToken("k1")))
    let upload = try storage.service.appendUpload(
      UploadPart(of: id, start: 0, total: .here), as: TestStorage.stranger)
    upload.open()
    upload.append(Array("text".utf8))
    storage.revokedKeys.update { $0.insert("k1") }
    #expect(failure { _ = try upload.finish() }?.isDenied == true)
    #expect(failure { _ = try storage.append(id, "text", at: 0, total: .here) } == .uploadOver)
  }

  @Test func quotasApplyPerOwner() throws {
    let storage = try TestStorage("allow create;") { $0.uploadsOfOwnerMax = 2 }
    let callers: [(Caller, String, FilesError?)] = [
      (TestStorage.user("ann"), "1", nil), (TestStorage.user("ann"), "2", nil),
      (TestStorage.user("ann"), "3", .tooManyUploadsOfOwner(2)),
      // Guests and unauthenticated callers share the quota of their address.
      (TestStorage.user("g", isGuest: true), "1", nil), (TestStorage.stranger, "1", nil),
      (TestStorage.user("h", isGuest: true), "1", .tooManyUploadsOfOwner(2)), (TestStorage.stranger, "2", nil),
      (.admin, "1", nil), (.admin, "1", nil), (.admin, "1", nil),
    ]
    for (index, (caller, address, expected)) in callers.enumerated() {
      let owner = UploadOwner.of(caller, at: address)
      let error = failure { _ = try storage.begin("\(index)", owner: owner, as: caller) }
      #expect(error == expected, "\(index)")
    }
    // An upload that was idle for an hour makes room.
    storage.time.advance(seconds: UploadRecord.restSeconds + 1)
    let ann = TestStorage.user("ann")
    _ = try storage.begin("a", owner: UploadOwner.of(ann, at: "1"), as: ann)
  }
}
