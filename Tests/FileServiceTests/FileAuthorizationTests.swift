import Callers
import DatabaseService
import Files
import FileService
import Testing

/// Security rules of files, evaluated by the calls themselves.
@Suite struct FileAuthorizationTests {
  /// A call for the object `a`, which exists.
  struct Call: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The operations that rules must allow, or `nil` if rules cannot allow the call.
    let methods: String?
    let run: @Sendable (TestStorage, Caller) throws -> Void

    init(_ name: String, _ methods: String?, _ run: @escaping @Sendable (TestStorage, Caller) throws -> Void) {
      testDescription = name
      self.methods = methods
      self.run = run
    }
  }

  private static let a = TestStorage.name("a")

  static let calls: [Call] = [
    Call("getObject", "get") { _ = try $0.service.getObject(a, as: $1) },
    Call("getContent", "get") { _ = try $0.text("a", as: $1) },
    Call("listNames", "list") { _ = try $0.service.listNames(ObjectListing(bucket: "b"), as: $1) },
    Call("insertObject", "create") { try $0.put("new", "text", as: $1) },
    Call("replace", "create") { try $0.put("a", "text", as: $1) },
    Call("beginUpload", "create") { _ = try $0.begin("new", bytes: 3, as: $1) },
    Call("appendUpload", "create") { storage, caller in
      let id = try storage.begin("new", bytes: 3, as: caller)
      _ = try storage.append(id, "abc", at: 0, total: .here, as: caller)
    },
    Call("patchObject", "update") { storage, caller in
      _ = try storage.service.patchObject(a, as: caller) { $0.contentLanguage = "en" }
    },
    Call("deleteObject", "delete") { try $0.service.deleteObject(a, as: $1) },
    Call("composeObject", nil) {
      _ = try $0.service.composeObject([ComposedPart(name: "a")], to: TestStorage.name("c"), as: $1)
    },
    Call("copyObject", nil) { _ = try $0.service.copyObject(CopySource(a), to: TestStorage.name("c"), as: $1) },
    Call("moveObject", nil) { _ = try $0.service.moveObject(CopySource(a), to: TestStorage.name("c"), as: $1) },
    Call("createDownloadToken", nil) { _ = try $0.service.createDownloadToken(of: a, as: $1) },
    Call("revokeDownloadToken", nil) { _ = try $0.service.revokeDownloadToken("t", of: a, as: $1) },
    Call("getBucket", nil) { _ = try $0.service.getBucket("b", as: $1) },
    Call("listBuckets", nil) { _ = try $0.service.listBuckets(max: 1, as: $1) },
    Call("insertBucket", nil) { _ = try $0.service.insertBucket("c", as: $1) },
    Call("patchBucket", nil) { storage, caller in
      _ = try storage.service.patchBucket("b", as: caller) { $0.keepsVersions = true }
    },
    Call("deleteBucket", nil) { storage, caller in
      _ = try storage.service.insertBucket("empty", as: .admin)
      try storage.service.deleteBucket("empty", as: caller)
    },
  ]

  private static let operations = ["get", "list", "create", "update", "delete"]

  @Test(arguments: calls)
  func administratorsNeedNoRules(call: Call) throws {
    let storage = try TestStorage()
    try storage.put("a", "text")
    try call.run(storage, .admin)
  }

  @Test(arguments: calls)
  func strangersAreRefusedWithoutRules(call: Call) throws {
    let storage = try TestStorage()
    try storage.put("a", "text")
    #expect(failure { try call.run(storage, TestStorage.stranger) }?.isDenied == true)
    #expect(try storage.text("a") == "text")
  }

  @Test(arguments: calls)
  func eachCallNeedsItsOwnOperation(call: Call) throws {
    for method in Self.operations {
      let storage = try TestStorage("allow \(method);")
      try storage.put("a", "text")
      let error = failure { try call.run(storage, TestStorage.user("ann")) }
      if method == call.methods {
        #expect(error == nil, "\(method)")
      } else {
        #expect(error?.isDenied == true, "\(method): \(String(describing: error))")
        #expect(try storage.text("a") == "text")
      }
    }
  }

  @Test func existenceIsNotRevealed() throws {
    let storage = try TestStorage("allow get: if request.auth.uid == 'ann';")
    try storage.put("a", "text")
    for name in ["a", "none"] {
      #expect(
        failure { _ = try storage.service.getObject(TestStorage.name(name), as: TestStorage.stranger) }?.isDenied
          == true)
    }
    #expect(
      failure { _ = try storage.service.getObject(TestStorage.name("none"), as: TestStorage.user("ann")) }
        == .noSuchObject(TestStorage.name("none")))
  }

  @Test func downloadTokenPermitsContentOnly() throws {
    let storage = try TestStorage("allow get: if false;")
    try storage.put("a", "text")
    let object = try storage.service.createDownloadToken(of: Self.a, as: .admin)
    let token = try #require(object.attributes.metadata.downloadTokens.first)
    #expect(try storage.text("a", token: token, as: TestStorage.stranger) == "text")
    #expect(failure { _ = try storage.text("a", token: "other", as: TestStorage.stranger) }?.isDenied == true)
    #expect(failure { _ = try storage.service.getObject(Self.a, as: TestStorage.stranger) }?.isDenied == true)
    _ = try storage.service.revokeDownloadToken(token, of: Self.a, as: .admin)
    #expect(failure { _ = try storage.text("a", token: token, as: TestStorage.stranger) }?.isDenied == true)
  }

  @Test func rulesSeeTheObjectBeforeAndAfterAWrite() throws {
    let storage = try TestStorage(
      "allow create: if resource == null && request.resource.size == 4 && request.resource.contentType == 'a/b';"
        + "allow update: if resource.contentLanguage == null && request.resource.contentLanguage == 'en';")
    let ann = TestStorage.user("ann")
    var draft = TestStorage.draft("a")
    draft.attributes.contentType = "a/b"
    #expect(failure { try storage.put("a", "text", as: ann) }?.isDenied == true)
    #expect(failure { _ = try storage.service.insertObject(draft, content: [1], as: ann) }?.isDenied == true)
    _ = try storage.service.insertObject(draft, content: [1, 2, 3, 4], as: ann)
    #expect(failure { _ = try storage.service.insertObject(draft, content: [1, 2, 3, 4], as: ann) }?.isDenied == true)
    func patch(_ language: String) -> FilesError? {
      failure { _ = try storage.service.patchObject(Self.a, as: ann) { $0.contentLanguage = language } }
    }
    #expect(patch("de")?.isDenied == true)
    #expect(patch("en") == nil)
    #expect(patch("en")?.isDenied == true)
  }

  @Test func uploadIsRefusedEarlyOnlyIfNoLengthIsAllowed() throws {
    let storage = try TestStorage("allow create: if request.resource.size < 100;")
    let ann = TestStorage.user("ann")
    func begin(_ sizes: ClosedRange<Int>?) -> FilesError? {
      var draft = TestStorage.draft("a")
      draft.sizes = sizes
      return failure { _ = try storage.service.insertObject(draft, as: ann) }
    }
    #expect(begin(99...99) == nil && begin(100...100)?.isDenied == true)
    #expect(begin(98...100) == nil && begin(100...102)?.isDenied == true)
    #expect(begin(nil) == nil)
    try storage.set("allow create: if request.resource.md5Hash == 'x';")
    // The checksum is known only at the end.
    #expect(begin(5...5) == nil && begin(nil) == nil)
    #expect(begin((1 << 30)...(1 << 30))?.isDenied == true)
    try storage.set("allow create: if false;")
    #expect(begin(5...5)?.isDenied == true && begin(nil)?.isDenied == true)
  }

  @Test func contentOfUnknownLengthIsLimitedForUsers() throws {
    let storage = try TestStorage("allow create;")
    func send(_ caller: Caller, _ bytes: Int?) throws -> FilesError? {
      let upload = try storage.service.insertObject(TestStorage.draft("a", bytes: bytes), as: caller)
      upload.open()
      upload.append([UInt8](repeating: 0, count: 16 << 20))
      upload.append([0])
      return failure { _ = try upload.finish() }
    }
    #expect(try send(TestStorage.user("ann"), nil) == .lengthRequired(bytesMax: 16 << 20))
    #expect(try send(TestStorage.user("ann"), (16 << 20) + 1) == nil)
    #expect(try send(.admin, nil) == nil)
  }

  @Test func rulesAtTheEndSeeTheFinalChecksums() throws {
    let storage = try TestStorage("allow create: if request.resource.md5Hash == 'XUFAKrxLKna5cZ2REBfFkg==';")
    #expect(failure { try storage.put("a", "hello", as: TestStorage.stranger) } == nil)
    #expect(failure { try storage.put("b", "other", as: TestStorage.stranger) }?.isDenied == true)
    #expect(try storage.text("b") == nil)
  }
}
