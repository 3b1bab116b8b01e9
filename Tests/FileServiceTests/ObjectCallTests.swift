import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FileService
import Testing
import WireFormat

/// Calls for objects, made by an administrator.
@Suite struct ObjectCallTests {
  private static let a = TestStorage.name("a")

  private static func generation(_ number: Int64) -> ObjectConditions {
    var conditions = ObjectConditions()
    conditions.generationMatch = number
    return conditions
  }

  @Test func callsCheckConditions() throws {
    let storage = try TestStorage()
    let object = try storage.put("a", "text")
    let wrong = Self.generation(object.generation + 1)
    let unmet = FilesError.conditionNotMet("ifGenerationMatch")
    let (service, b) = (storage.service, TestStorage.name("b"))
    #expect(failure { _ = try service.getObject(Self.a, conditions: wrong, as: .admin) } == unmet)
    #expect(failure { _ = try service.patchObject(Self.a, conditions: wrong, as: .admin) { _ in } } == unmet)
    #expect(failure { try service.deleteObject(Self.a, conditions: wrong, as: .admin) } == unmet)
    #expect(failure { _ = try service.copyObject(CopySource(Self.a, conditions: wrong), to: b, as: .admin) } == unmet)
    #expect(
      failure { _ = try service.copyObject(CopySource(Self.a), to: Self.a, conditions: wrong, as: .admin) } == unmet)
    #expect(failure { _ = try service.moveObject(CopySource(Self.a, conditions: wrong), to: b, as: .admin) } == unmet)
    #expect(
      failure { _ = try service.composeObject([ComposedPart(name: "a")], to: Self.a, conditions: wrong, as: .admin) }
        == unmet)
    var draft = TestStorage.draft("a")
    draft.conditions = Self.generation(0)
    #expect(failure { _ = try service.insertObject(draft, content: [], as: .admin) } == unmet)
    #expect(try storage.text("a") == "text" && storage.text("b") == nil)
    var current = ObjectConditions()
    current.generationNotMatch = object.generation
    #expect(failure { _ = try service.getObject(Self.a, conditions: current, as: .admin) } == .notModified)
  }

  @Test func objectsAreCopiedMovedAndComposed() throws {
    let storage = try TestStorage()
    try storage.put("a", "one")
    try storage.put("b", "two")
    let service = storage.service
    let copy = try service.copyObject(CopySource(Self.a), to: TestStorage.name("c"), as: .admin) {
      (attributes) throws(FilesError) in attributes.contentType = "x/y"
    }
    #expect(copy.contentType == "x/y")
    _ = try service.moveObject(CopySource(TestStorage.name("c")), to: TestStorage.name("d"), as: .admin)
    #expect(try storage.text("c") == nil && storage.text("d") == "one")
    let whole = try service.composeObject(
      [ComposedPart(name: "a"), ComposedPart(name: "b")], to: TestStorage.name("e"), removesParts: true, as: .admin)
    #expect(whole.componentCount == 2)
    let page = try service.listObjects(ObjectListing(bucket: "b"), as: .admin)
    #expect(page.objects.map(\.name.name) == ["d", "e"])
    #expect(try storage.text("e") == "onetwo")
  }

  @Test func listOfAMissingBucketFailsOnlyOnRequest() throws {
    let storage = try TestStorage()
    var listing = ObjectListing(bucket: "none")
    #expect(try storage.service.listObjects(listing, as: .admin).objects.isEmpty)
    listing.requiresBucket = true
    #expect(failure { _ = try storage.service.listObjects(listing, as: .admin) } == .noSuchBucket("none"))
  }

  @Test func downloadTokenIsAddedToTheObjectThatWasRead() throws {
    let storage = try TestStorage()
    let object = try storage.put("a", "text")
    let made = try storage.service.addMissingDownloadToken(to: object, conditions: ObjectConditions(), as: .admin)
    #expect(made.attributes.metadata.downloadTokens.count == 1 && made.metageneration == object.metageneration)
    let again = try storage.service.addMissingDownloadToken(to: object, conditions: ObjectConditions(), as: .admin)
    #expect(again == made)
    try storage.put("a", "other")
    let error = failure {
      _ = try storage.service.addMissingDownloadToken(
        to: object, conditions: Self.generation(object.generation), as: .admin)
    }
    #expect(error == .conditionNotMet("ifGenerationMatch"))
  }

  @Test func objectAndDocumentsAreCommittedTogether() throws {
    let storage = try TestStorage()
    let id = try #require(DatabaseID(project: "p"))
    let key = try #require(DocumentKey(try ResourcePath("scans/a")))
    func put(_ precondition: Precondition, _ text: String) throws -> UploadResult? {
      let write = Write(.update(EncodedFields(MapValue()), mask: nil), key: key, precondition: precondition)
      let upload = try storage.service.insertObject(
        TestStorage.draft("a"), with: FileCommit([write], in: id), as: .admin)
      upload.open()
      upload.append(Array(text.utf8))
      return try upload.finish()
    }
    guard case .stored(_, let outcome?)? = try put(.exists(false), "text") else {
      Issue.record("not stored")
      return
    }
    #expect(outcome.results.count == 1)
    let error = failure { _ = try put(.exists(false), "other") }
    if case .commitRefused(let code, _, _)? = error {
      #expect(code == 6)
    } else {
      Issue.record("\(String(describing: error))")
    }
    #expect(try storage.text("a") == "text")
    let refused = failure {
      _ = try storage.service.insertObject(
        TestStorage.draft("a"), with: FileCommit([], in: id), as: TestStorage.stranger)
    }
    #expect(refused?.isDenied == true)
  }
}
