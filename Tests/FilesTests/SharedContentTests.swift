import ContentSharing
import Files
import Glibc
import KeyValue
import Synchronization
import Testing
import TestSupport

/// A successor can serve everything that an owner acknowledged.
@Suite struct SharedContentTests {
  /// The names that an owner has acknowledged, and all texts that it was asked to store.
  private final class Witness: Sendable {
    struct State {
      var acknowledged: [String: String?] = [:]
      var attempted: [String: Set<String>] = [:]
      var copies: [(metadata: String, acknowledged: [String: String?], changing: String?)] = []
      var changing: String?
    }
    let state = Mutex(State())
  }

  /// The owner dies at random moments: between the file, the copy, and the commit. Calls fail, and answers are lost.
  @Test(arguments: TestSeeds.of("HEARTH_SHARED_SEED", otherwise: [1, 2, 3, 4]))
  func successorHasWhatWasAcknowledged(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let shared = MemoryContent()
    let owner = try SharedNode(shared, cache: 20_000)
    let witness = Witness()
    let faults = Mutex(SplitMix(seed: seed &+ 100))
    let die: @Sendable () -> Void = {
      guard faults.withLock({ $0.chance(oneIn: 8) }) else { return }
      let (acknowledged, changing) = witness.state.withLock { ($0.acknowledged, $0.changing) }
      guard let copy = try? owner.copyMetadata() else { return }
      witness.state.withLock { $0.copies.append((copy, acknowledged, changing)) }
    }
    shared.before { call in
      die()
      return faults.withLock { $0.chance(oneIn: 10) } && call != .identity ? .unavailable("lost request") : nil
    }
    shared.after { _ in
      die()
      return faults.withLock { $0.chance(oneIn: 10) } ? .unavailable("lost answer") : nil
    }
    owner.faults.beforeWrite { _ in die() }
    for step in 0..<120 {
      let name = "n\(Int.random(in: 0..<12, using: &random))"
      witness.state.withLock { $0.changing = name }
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        if (try? owner.store.delete(TestFiles.name(name))) != nil {
          witness.state.withLock { _ = $0.acknowledged.updateValue(nil, forKey: name) }
        }
      case 1:
        owner.advance(seconds: 4000)
        _ = try? owner.store.sweepShared()
      case 2: _ = owner.store.trimCache()
      case 3: _ = try? owner.text(name)
      default:
        // Some contents are equal.
        let text = String(repeating: "\(Int.random(in: 0..<20, using: &random))-", count: 1 + step * 10)
        witness.state.withLock { _ = $0.attempted[name, default: []].insert(text) }
        if random.chance(oneIn: 8) { owner.faults.failWrites(.diskFull(path: "x"), times: 1) }
        if (try? owner.put(name, text)) != nil {
          witness.state.withLock { $0.acknowledged[name] = text }
        }
        owner.faults.failWrites(.diskFull(path: "x"), times: 0)
      }
      witness.state.withLock { $0.changing = nil }
    }
    shared.before(nil)
    shared.after(nil)
    owner.faults.beforeWrite(nil)
    let state = witness.state.withLock { $0 }
    // A copy that was removed after a death belongs to an owner that lived on. So only the last deaths are judged by the
    // content as it is now.
    let last = try owner.copyMetadata()
    try expect([(last, state.acknowledged, nil)], state, shared, seed)
    #expect(state.copies.count > 10, "seed \(seed)")
    try expectUnacknowledgedAreAbsent(state, shared, seed)
  }

  private func expect(
    _ copies: [(metadata: String, acknowledged: [String: String?], changing: String?)], _ state: Witness.State,
    _ shared: MemoryContent, _ seed: UInt64
  ) throws {
    for (metadata, acknowledged, _) in copies {
      let successor = try SharedNode(shared, metadata: metadata)
      for (name, text) in acknowledged { #expect(try successor.text(name) == text, "seed \(seed), \(name)") }
    }
  }

  /// On the metadata of each death, names have the acknowledged objects. The name that was just being changed may differ.
  private func expectUnacknowledgedAreAbsent(_ state: Witness.State, _ shared: MemoryContent, _ seed: UInt64) throws {
    for (metadata, acknowledged, changing) in state.copies {
      let successor = try SharedNode(shared, metadata: metadata)
      for name in state.attempted.keys {
        let object = try successor.store.object(TestFiles.name(name))
        if name != changing {
          #expect((object == nil) == ((acknowledged[name] ?? nil) == nil), "seed \(seed), \(name)")
        }
        guard object != nil, let text = try? successor.text(name) else { continue }
        #expect(state.attempted[name]?.contains(text) == true, "seed \(seed), \(name)")
      }
    }
  }

  /// At each moment at which an owner without sweeps can die, its successor can read everything.
  @Test func everyDeathOfAnUploadLeavesWholeObjects() throws {
    let shared = MemoryContent()
    let owner = try SharedNode(shared)
    try owner.put("a", "old")
    let copies = Mutex<[String]>([])
    let die: @Sendable () -> Void = { if let copy = try? owner.copyMetadata() { copies.withLock { $0.append(copy) } } }
    shared.before { _ in
      die()
      return nil
    }
    shared.after { _ in
      die()
      return nil
    }
    owner.faults.beforeWrite { _ in die() }
    try owner.put("a", "new")
    try owner.put("b", "new")
    try owner.put("b", "old")
    try owner.store.delete(TestFiles.name("a"))
    let found = copies.withLock { $0 }
    #expect(found.count >= 8)
    for copy in found {
      let successor = try SharedNode(shared, metadata: copy)
      for name in ["a", "b"] {
        guard try successor.store.object(TestFiles.name(name)) != nil else { continue }
        let text = try successor.text(name)
        #expect(text == "old" || text == "new")
      }
    }
  }

  @Test func documentsAndFileAreCommittedWithTheirCopy() throws {
    for isCommitted in [true, false] {
      let shared = MemoryContent()
      let owner = try SharedNode(shared, wasCommitted: true)
      let copy = Mutex<String?>(nil)
      _ = try owner.store.put(
        TestFiles.name("a"), owner.store.incoming("both"), ObjectAttributes(),
        with: DocumentsCommit(database: "d") { (_) throws(FilesError) in
          let path = try? owner.copyMetadata()
          copy.withLock { $0 = path }
        })
      #expect(try owner.text("a") == "both")
      let path: String = try #require(copy.withLock { $0 })
      let successor = try SharedNode(shared, metadata: path, wasCommitted: isCommitted)
      #expect(try successor.text("a") == (isCommitted ? "both" : nil))
    }
  }

  @Test func failedPublicationStoresNothing() throws {
    let shared = MemoryContent()
    let node = try SharedNode(shared)
    try node.put("a", "old")
    shared.before { $0 == .publish ? .unavailable("down") : nil }
    #expect(throws: FilesError.sharedContent("down")) { try node.put("a", "new") }
    #expect(throws: FilesError.sharedContent("down")) {
      try node.store.put(
        TestFiles.name("a"), node.store.incoming("both"), ObjectAttributes(),
        with: DocumentsCommit(database: "d") { (_) throws(FilesError) in Issue.record("the documents were committed") })
    }
    #expect(try node.text("a") == "old")
    #expect(node.cached.count == 1)
    // An object that refers to the content already needs no copy.
    try node.put("b", "old")
    #expect(shared.copies.count == 1)
  }

  @Test func storesWithoutSharedContentShareIt() throws {
    let directory = try TemporaryDirectory()
    try SharedNode(nil, in: directory).put("a", "before")
    let shared = MemoryContent()
    let owner = try SharedNode(shared, in: directory)
    // The content has an object, but no copy.
    try owner.put("b", "before")
    #expect(shared.copies.count == 1)
    #expect(try owner.store.shareStored().contents == 0)
    let successor = try SharedNode(shared, metadata: try owner.copyMetadata())
    #expect(try successor.text("a") == "before")
  }

  /// A folder that is not mounted is an empty place, and a mistyped prefix may lead to that of other files.
  @Test(arguments: [nil, 2] as [UInt64?]) func anotherPlaceIsRefused(identity: UInt64?) throws {
    let owner = try SharedNode(MemoryContent())
    try owner.put("a", "kept")
    let other = MemoryContent()
    other.setIdentity(identity)
    let stranger = try SharedNode(other, metadata: try owner.copyMetadata())
    #expect(throws: FilesError.self) { try stranger.text("a") }
    #expect(throws: FilesError.self) { try stranger.put("c", "c") }
    #expect(throws: FilesError.self) { try stranger.store.sweepShared() }
    #expect(other.copies.isEmpty)
    // Other files cannot claim a place that has an owner.
    let claimed = MemoryContent()
    try SharedNode(claimed).put("a", "kept")
    let second = try SharedNode(claimed)
    #expect(throws: FilesError.self) { try second.put("b", "b") }
    #expect(throws: FilesError.self) { try second.store.sweepShared() }
  }

  @Test func storedContentIsSharedOnce() throws {
    let directory = try TemporaryDirectory()
    let before = try SharedNode(nil, in: directory)
    for number in 0..<5 { try before.put("n\(number)", "text \(number)") }
    let shared = MemoryContent(bytesMax: 10)
    let node = try SharedNode(shared, metadata: try before.copyMetadata(), in: directory)
    #expect(try node.store.shareStored().contents == 5)
    #expect(try node.store.shareStored().contents == 0)
    #expect(shared.count(.publish) == 5)
    #expect(throws: FilesError.tooLarge(bytesMax: 10)) { try node.put("big", "more than 10 bytes") }
    var record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    record.declaredSize = 11
    #expect(throws: FilesError.tooLarge(bytesMax: 10)) { try node.store.beginUpload(record) }
  }

  @Test func bytesOfAnUploadStayOnTheirNode() throws {
    let shared = MemoryContent()
    let owner = try SharedNode(shared)
    let record = UploadRecord(name: TestFiles.name("big"), attributes: ObjectAttributes())
    try owner.store.beginUpload(record)
    let upload = try owner.store.openUpload(record.id)
    try Array("hello ".utf8).withUnsafeBytes { try upload.incoming.append($0) }
    try owner.store.saveUpload(upload)
    owner.store.endUpload(upload)
    let successor = try SharedNode(shared, metadata: try owner.copyMetadata())
    for _ in 0..<2 { #expect(throws: FilesError.uploadLost) { try successor.store.openUpload(record.id) } }
    #expect(try owner.store.openUpload(record.id).incoming.size == 6)
  }
}
