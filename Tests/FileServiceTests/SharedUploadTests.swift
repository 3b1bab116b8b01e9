import Callers
import ContentSharing
import Files
import FileService
import Foundation
import Testing
import TestSupport

/// Files on the next owner of a cluster: whole objects are there, and uploads that were under way begin again.
@Suite struct SharedUploadTests {
  private let folder: TemporaryDirectory
  private let storage: TestStorage

  init() throws {
    let folder = try TemporaryDirectory()
    self.folder = folder
    storage = try TestStorage("allow read, write: if true") { $0.shared = SharedFolder(folder.path) }
  }

  @Test func objectsAreOnTheNextOwner() throws {
    try storage.put("a", "one")
    let id = try storage.begin("b", bytes: 3)
    #expect(try storage.append(id, "two", at: 0, total: .here)?.object != nil)
    try storage.failOver()
    // A loop must not wait for the shared content.
    #expect(throws: FilesError.notCached) {
      try storage.service.getContent(TestStorage.name("a"), waits: false, as: .admin)
    }
    #expect(try storage.text("a") == "one")
    #expect(try storage.text("b", as: TestStorage.stranger) == "two")
    #expect(try storage.service.getContent(TestStorage.name("a"), waits: false, as: .admin).map { $0.close() } != nil)
    // The last part of a finished upload is repeated.
    #expect(try storage.service.repeatUpload(id, as: .admin).content.size == 3)
    #expect(try storage.service.queryUpload(id, as: .admin).isFinal)
  }

  @Test func uploadsUnderWayBeginAgain() throws {
    let fresh = try storage.begin("fresh", bytes: 4)
    let begun = try storage.begin("begun", bytes: 4)
    #expect(try storage.append(begun, "ab", at: 0, total: .unknown)?.receivedBytes == 2)
    try storage.failOver()
    for id in [fresh, begun] {
      for start in [0, 2, nil] as [Int?] {
        #expect(failure { _ = try storage.append(id, "cd", at: start, total: .here) } == .uploadLost)
      }
      #expect(failure { _ = try storage.service.queryUpload(id, as: .admin) } == .uploadLost)
      #expect(failure { try storage.service.cancelUpload(id, as: .admin) } == .uploadLost)
    }
    #expect(try storage.text("begun") == nil)
    let again = try storage.begin("begun", bytes: 4)
    #expect(try storage.append(again, "abcd", at: 0, total: .here)?.object != nil)
    try storage.failOver()
    #expect(try storage.text("begun") == "abcd")
  }
}
