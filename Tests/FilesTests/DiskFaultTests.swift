import Basics
import Files
import Foundation
import Glibc
import KeyValue
import Testing
import TestSupport
import WireFormat

/// A full or failing disk: no operation has a partial effect, space is released, and the store continues to work.
@Suite struct DiskFaultTests {
  static let calls: [(DiskCall, Int32, FilesError?)] = [
    (.write, ENOSPC, .full), (.write, EDQUOT, .full), (.write, EFBIG, .full), (.write, EIO, nil),
    (.sync, ENOSPC, .full), (.sync, EIO, nil), (.link, ENOSPC, .full), (.link, EIO, nil),
    (.syncFolder, ENOSPC, .full), (.syncFolder, EIO, nil),
  ]

  @Test(arguments: calls)
  func failedUploadLeavesNothing(call: DiskCall, code: Int32, expected: FilesError?) throws {
    let files = try TestFiles()
    let kept = try files.put("kept", "kept")
    let before = files.files
    files.faults.set(call, code)
    let error = #expect(throws: FilesError.self) { try files.put("new", "new") }
    if let expected { #expect(error == expected) }
    if expected == nil, case .system(_, _, let found) = error { #expect(found == code) }
    // Replace another object, and replace an object with the same content.
    #expect(throws: FilesError.self) { try files.put("kept", "other") }
    #expect(throws: FilesError.self) { try files.put("kept", "kept") }
    #expect(try files.store.object(TestFiles.name("new")) == nil)
    #expect(try files.store.object(TestFiles.name("kept")) == kept)
    #expect(try files.text("kept") == "kept")
    #expect(files.files == before)
    files.faults.set(call, 0)
    try files.put("new", "new")
    #expect(try files.text("new") == "new")
    try files.reopen()
    #expect(try files.store.sweep() == 0)
    #expect(try files.text("kept") == "kept")
  }

  @Test func fullMetadataStoreLeavesNothing() throws {
    let files = try TestFiles()
    try files.put("kept", "kept")
    for error in [StorageError.diskFull(path: "x"), .storageFull(limitBytes: 1)] {
      files.faults.failWrites(error, times: 1)
      #expect(throws: FilesError.full) { try files.put("new", "new") }
      #expect(files.files.count == 1)
      files.faults.failWrites(error, times: 1)
      #expect(throws: FilesError.full) { try files.put("copy", "kept") }
      #expect(try files.text("kept") == "kept", "another object has the same content")
      files.faults.failWrites(error, times: 1)
      #expect(throws: FilesError.full) { try files.store.delete(TestFiles.name("kept")) }
      #expect(try files.text("kept") == "kept")
    }
    try files.put("new", "new")
    #expect(files.files.count == 2)
  }

  /// A store of a cluster fails so after another node has taken over.
  @Test func aStoreOfAnotherOwnerSaysSo() throws {
    let files = try TestFiles()
    try files.put("kept", "kept")
    let error = StorageError.notOwner(of: "files", owner: nil)
    files.faults.failWrites(error, times: 1)
    #expect(throws: FilesError.notOwner) { try files.put("new", "new") }
    files.faults.failWrites(error, times: 1)
    #expect(throws: FilesError.notOwner) { try files.store.delete(TestFiles.name("kept")) }
    files.faults.failSnapshots(error)
    #expect(throws: FilesError.notOwner) { try files.store.object(TestFiles.name("kept")) }
    files.faults.failSnapshots(nil)
    #expect(try files.text("kept") == "kept")
    #expect(try files.store.object(TestFiles.name("new")) == nil)
  }

  @Test func failedPartCanBeResent() throws {
    let files = try TestFiles()
    let record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    func send(_ text: String) throws {
      let upload = try files.store.openUpload(record.id)
      defer { files.store.endUpload(upload) }
      try Array(text.utf8).withUnsafeBytes { try upload.incoming.append($0) }
      try files.store.saveUpload(upload)
    }
    try send("hello ")
    files.faults.set(.write, ENOSPC)
    #expect(throws: FilesError.full) { try send("wor") }
    files.faults.set(.write, 0)
    let upload = try files.store.openUpload(record.id)
    #expect(upload.incoming.size == 6)
    try Array("world".utf8).withUnsafeBytes { try upload.incoming.append($0) }
    let object = try files.store.finishUpload(upload, declared: DeclaredChecksums())
    #expect(try files.text("big") == "hello world")
    #expect(object.content.size == 11)
    #expect(Hexadecimal.text(object.content.md5) == "5eb63bbbe01eeed093cb22bb8f5acdc3")
  }

  @Test func failedSyncEndsTheUpload() throws {
    let files = try TestFiles()
    let record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    try files.store.beginUpload(record)
    let upload = try files.store.openUpload(record.id)
    try Array("hello".utf8).withUnsafeBytes { try upload.incoming.append($0) }
    files.faults.set(.sync, EIO)
    #expect(throws: FilesError.self) { try files.store.saveUpload(upload) }
    files.faults.set(.sync, 0)
    // By now the kernel would report success.
    #expect(throws: FilesError.self) { try upload.incoming.sync() }
    files.store.endUpload(upload)
    #expect(throws: FilesError.uploadOver) { _ = try files.store.openUpload(record.id) }
  }

  @Test func failureInAGroupAffectsOnlyItself() throws {
    let waiting = Observed(0)
    let files = try TestFiles { $0.objectWaits = { waiting.update { $0 += 1 } } }
    let held = try files.put("held", "0")
    // The first write waits until all others are queued, so those form one group. Their first commit fails.
    let count = 8
    files.faults.beforeWrite { [faults = files.faults, first = files.faults.writes + 1] number in
      guard number == first else { return }
      // One is that of the object "held".
      _ = waiting.wait { $0 == count + 1 }
      faults.failWrites(.diskFull(path: "x"), times: 2)
    }
    let outcomes = Outcomes()
    onThreads(count) { [store = files.store] index in
      let name = index == 3 ? "held" : "n\(index)"
      do {
        let content = try store.incoming("content \(index)")
        _ = try store.put(TestFiles.name(name), content, ObjectAttributes()) { (before, _) throws(FilesError) in
          if before != nil { throw .denied("no") }
        }
        outcomes.add(name, nil)
      } catch { outcomes.add(name, error as? FilesError) }
    }
    files.faults.beforeWrite(nil)
    #expect(outcomes.error(of: "held") == .denied("no"))
    #expect(try files.store.object(TestFiles.name("held")) == held)
    for index in 0..<count where index != 3 {
      let name = "n\(index)"
      let isThere = try files.store.object(TestFiles.name(name)) != nil
      #expect(isThere == (outcomes.error(of: name) == nil), "\(name)")
      if isThere { #expect(try files.text(name) == "content \(index)") }
    }
    // The first commit failed for the first write, the second for the whole group, whose writes were tried one by
    // one.
    #expect(outcomes.all.values.filter { $0 == .full }.count <= 1)
    #expect(files.files.count == outcomes.all.values.filter { $0 == nil }.count + 1)
  }

  @Test func waitingWritesShareATransaction() throws {
    let waiting = Observed(0)
    let files = try TestFiles { $0.objectWaits = { waiting.update { $0 += 1 } } }
    try files.put("first", "first")
    let count = 16
    let before = files.faults.writes
    files.faults.beforeWrite { number in
      guard number == before + 1 else { return }
      // One is that of the object "first".
      _ = waiting.wait { $0 == count + 1 }
    }
    onThreads(count) { [store = files.store] index in
      guard let content = try? store.incoming("content \(index)") else { return }
      _ = try? store.put(TestFiles.name("n\(index)"), content, ObjectAttributes())
    }
    files.faults.beforeWrite(nil)
    #expect(files.faults.writes == before + 2, "the first alone, all others together")
    let names = try files.store.list(ObjectListing(bucket: "b")).objects
    #expect(names.count == count + 1)
    #expect(Set(names.map(\.generation)).count == count + 1)
    for index in 0..<count { #expect(try files.text("n\(index)") == "content \(index)") }
  }

  /// Several threads store and delete the same content. It must exist exactly as long as an object refers to it.
  @Test func sharedContentIsNeverMissing() throws {
    let files = try TestFiles()
    let problems = Outcomes()
    onThreads(4) { [store = files.store] worker in
      for _ in 0..<50 {
        let name = "n\(worker)"
        do {
          let object = try store.put(TestFiles.name(name), store.incoming("same"), ObjectAttributes())
          guard let found = try store.open(object.name) else { return problems.add(name, .noSuchObject(object.name)) }
          close(found.descriptor)
          try store.delete(object.name)
        } catch { problems.add(name, error as? FilesError ?? .uploadOver) }
      }
    }
    #expect(problems.all.isEmpty, "\(problems.all)")
    #expect(files.files.isEmpty)
  }
}
