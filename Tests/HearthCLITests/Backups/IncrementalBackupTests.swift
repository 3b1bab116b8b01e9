import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import KeyValue
import LMDBEngine
import Testing
import TestSupport

@testable import HearthCLI

/// Incremental backups of a server that is running, in a folder and in a bucket.
@Suite(.needs(.hearth)) struct IncrementalBackupTests {
  private static let owner = [("Authorization", "Bearer owner")]
  private static let firstTime = Timestamp(uncheckedMicroseconds: 1_800_000_000_000_000)
  private let directory: TemporaryDirectory
  private let bucket = MemoryBucket()

  init() throws { directory = try TemporaryDirectory() }

  private var data: String { directory.file("d") }

  private func serve(hasLog: Bool? = nil) throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"], hasLog: hasLog)
  }

  private func place(_ name: String) -> any BackupPlace {
    name == "folder"
      ? BackupFolder(directory.file("places")) : BackupBucket(bucket, pieceBytes: 4096) { [bucket] in bucket.now }
  }

  private static func name(_ hours: Int) -> BackupName {
    BackupName(Timestamp(uncheckedMicroseconds: firstTime.microseconds + Int64(hours) * 3_600_000_000))
  }

  @discardableResult private func make(
    _ hours: Int, since parent: Int?, in place: any BackupPlace
  ) throws -> BackupOutcome {
    bucket.now = Self.name(hours).time
    let parent = try parent.map { hours in
      BackupParent(name: Self.name(hours), state: try #require(try place.state(of: Self.name(hours))))
    }
    return try place.make(Self.name(hours), of: DirectoryReader(data), since: parent) { _ in }
  }

  /// The restore of a folder checks databases in a process of `hearth`.
  private func restore(_ hours: Int, of place: any BackupPlace, to name: String) throws {
    let target = directory.file(name)
    guard place is BackupFolder else { return try place.restore(Self.name(hours), to: target) { _ in } }
    let result = try HearthBinary.run([
      "backups", "restore", place.text, target, "--name", Self.name(hours).text, "--quiet",
    ])
    guard result.exit == .code(0) else { throw CommandFailure.data(result.output) }
  }

  private func send(_ client: TestHTTPClient, _ method: String, _ path: String, _ body: String = "") throws {
    let reply = try client.send(method, path, headers: Self.owner, body: Array(body.utf8))
    try #require(reply.status == 200, "\(method) \(path): \(String(decoding: reply.body, as: UTF8.self))")
  }

  private func write(_ client: TestHTTPClient, _ path: String, _ number: Int, database: String = "(default)") throws {
    try send(
      client, "PATCH", "/v1/projects/demo/databases/\(database)/documents/\(path)",
      #"{"fields": {"n": {"integerValue": "\#(number)"}, "t": {"stringValue": "\#(path) \#(number)"}}}"#)
  }

  /// Returns everything that a data directory contains, as text.
  private func contents(_ path: String) throws -> String {
    var text = ""
    for database in try DirectoryReader(path).databases.map(\.database) {
      text += try run("export", "--data", path, "--project", "demo", "--database", database)
    }
    text += try run("accounts", "list", "--data", path, "--project", "demo")
    // A bucket exists when it has a file.
    text += try HearthBinary.run(["files", "ls", "--recursive", "gs://b", "--data", path, "--project", "demo"]).output
    for file in text.split(separator: "\n").compactMap({ $0.firstMatch(of: /file-\d+/).map { String($0.0) } }) {
      let copy = directory.file("\(UUID())")
      _ = try run("files", "cp", "gs://b/\(file)", copy, "--data", path, "--project", "demo", "--quiet")
      text += try String(contentsOfFile: copy, encoding: .utf8)
    }
    return text
  }

  private func run(_ words: String...) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "hearth \(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  private func fail(_ words: String..., with text: String) throws {
    let result = try HearthBinary.run(words)
    #expect(
      result.exit != .code(0) && result.output.contains(text),
      "hearth \(words.joined(separator: " ")): \(result.output)")
  }

  /// Random writes of documents of two databases, accounts and files between backups: each backup is restored as it was.
  @Test(.timeLimit(.minutes(10)), arguments: [("folder", true), ("folder", false), ("bucket", true)])
  func everyBackupIsRestored(kind: String, hasLog: Bool) throws {
    let seed: UInt64 = kind == "folder" ? 81 : 82
    var random = SplitMix(seed: seed)
    let place = place(kind)
    let server = try serve(hasLog: hasLog)
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    var expected: [String] = []
    for step in 0..<5 {
      for _ in 0..<Int.random(in: 1..<30, using: &random) {
        let path = "c\(Int.random(in: 0..<3, using: &random))/d\(Int.random(in: 0..<12, using: &random))"
        let number = Int.random(in: 0..<1000, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: _ = try? send(client, "DELETE", "/v1/projects/demo/databases/(default)/documents/\(path)")
        case 1 where step > 0: try write(client, path, number, database: "second")
        case 2 where step != 2: try send(client, "POST", "/v0/b/b/o?name=file-\(number % 7)", "content \(number)\n")
        case 3 where step != 3:
          try send(
            client, "POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=x",
            #"{"email": "u\#(UInt32.random(in: 0 ... .max, using: &random))@example.com", "password": "secret1"}"#)
        default: try write(client, path, number)
        }
      }
      let outcome = try make(step, since: step == 0 ? nil : step - 1, in: place)
      #expect(outcome.parent == (step == 0 ? nil : Self.name(step - 1)), "seed \(seed): \(outcome.notes)")
      #expect(try place.facts(of: Self.name(step)).parent == outcome.parent)
      _ = try run("backup", directory.file("full\(step)"), "--data", data, "--quiet")
      expected.append(try contents(directory.file("full\(step)")))
    }
    for (step, text) in expected.enumerated() {
      let restored = directory.file("r\(step)")
      try restore(step, of: place, to: "r\(step)")
      #expect(try contents(restored) == text, "seed \(seed), backup \(step)")
      _ = try run("check", restored)
      #expect(try place.databases(of: Self.name(step)) == DirectoryReader(restored).databases)
    }
    #expect(throws: CommandFailure.self, "the target is not empty") {
      try restore(4, of: place, to: "r4")
    }
    // A part of the chain cannot be removed, the newest backups can.
    #expect(throws: CommandFailure.self) { try place.remove([Self.name(1)]) }
    #expect(try place.names().count == 5)
    #expect(try place.removable(place.names(), keep: 1, made: Self.name(4)).isEmpty)
    try place.remove([Self.name(3), Self.name(4)])
    #expect(try place.names() == (0..<3).map(Self.name))
    try restore(2, of: place, to: "again")
    #expect(try contents(directory.file("again")) == expected[2])
  }

  @Test func unchangedStoresAreNotRepeated() throws {
    let server = try serve()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    for number in 0..<200 { try write(client, "c/d\(number)", number) }
    try send(client, "POST", "/v0/b/b/o?name=f", "content")
    let place = place("folder")
    try make(0, since: nil, in: place)
    try write(client, "c/d7", 1000)
    try make(1, since: 0, in: place)
    let state = try #require(try place.state(of: Self.name(1)))
    #expect(state.stores.map(\.form) == [.changes, .same, .same], "\(state.text)")
    #expect(state.parent == Self.name(0) && state.stores.map(\.path).first == "databases/demo/(default)/data.mdb")
    #expect(try BackupState(Array(state.text.utf8), of: "x") == state)
    let folder = directory.file("places/\(Self.name(1).text)")
    let changes = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/databases/demo/(default)/changes"))
    #expect(changes.count < 4096 && !FileManager.default.fileExists(atPath: "\(folder)/files/data.mdb"))
    try fail("serve", "--emulator", "--data", folder, "--port", "0", with: "has format incremental backup")
  }

  /// The clock was ahead for a while, so a backup has a later name than the next ones.
  @Test(arguments: ["folder", "bucket"]) func aClockThatStepsBackLosesNoBackup(kind: String) throws {
    let server = try serve()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let place = place(kind)
    func makeIncremental(_ hours: Int) throws -> BackupName? {
      try write(client, "c/d", hours)
      bucket.now = Self.name(hours).time
      let arguments = try Arguments(["p", "--incremental"], for: .backupsCreate)
      let parent = try BackupParent.chosen(for: Self.name(hours), arguments, in: place).parent
      _ = try place.make(Self.name(hours), of: DirectoryReader(data), since: parent) { _ in }
      return parent?.name
    }
    #expect(try makeIncremental(1) == nil)
    #expect(try makeIncremental(9) == Self.name(1))
    #expect(try makeIncremental(2) == Self.name(1))
    #expect(try makeIncremental(3) == Self.name(2))
    #expect(try place.removable(place.names(), keep: 1, made: Self.name(3)) == [])
    #expect(try place.removable(place.names(), keep: 1, made: Self.name(1)) == [Self.name(2), Self.name(3)])
    for hours in [1, 2, 3, 9] {
      try restore(hours, of: place, to: "r\(hours)")
      #expect(
        try run("get", "c/d", "--data", directory.file("r\(hours)"), "--project", "demo").contains("\"n\": \(hours)"))
    }
  }

  /// Listeners of one restored directory must not resume in another one.
  @Test(arguments: ["folder", "bucket"]) func everyRestoreHasAnIncarnationOfItsOwn(kind: String) throws {
    let server = try serve()
    let client = TestHTTPClient(port: server.port)
    try write(client, "c/d", 1)
    let place = place(kind)
    try make(0, since: nil, in: place)
    // After this, the database is in the incremental backup as a whole.
    try send(client, "DELETE", "/emulator/v1/projects/demo/databases/(default)/documents")
    try write(client, "c/d", 2)
    try make(1, since: 0, in: place)
    server.process.stop()
    for hours in [0, 1] {
      var incarnations: Set<UInt64> = []
      for number in 0..<2 {
        let name = "r\(hours)\(number)"
        try restore(hours, of: place, to: name)
        let store = try LMDBStore.open(LMDBOptions(path: directory.file("\(name)/databases/demo/(default)/data.mdb")))
        let snapshot = try store.snapshot()
        incarnations.insert(try DatabasePosition(snapshot).incarnation)
        snapshot.end()
      }
      #expect(incarnations.count == 2)
    }
  }

  @Test(arguments: ["folder", "bucket"]) func missingAndDamagedBackupsAreNamed(kind: String) throws {
    let server = try serve()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let place = place(kind)
    for step in 0..<3 {
      try write(client, "c/d", step)
      try make(step, since: step == 0 ? nil : step - 1, in: place)
    }
    let target = directory.file("r")
    func refusal(_ hours: Int) -> String {
      do {
        try restore(hours, of: place, to: "r")
        return "no error"
      } catch { return CommandFailure(error).message }
    }
    func damage(_ name: BackupName) throws -> () throws -> Void {
      if kind == "folder" {
        let file = URL(fileURLWithPath: directory.file("places/\(name.text)/databases/demo/(default)/changes"))
        let intact = try Data(contentsOf: file)
        var bytes = intact
        bytes[bytes.count / 2] ^= 4
        try bytes.write(to: file)
        return { try intact.write(to: file) }
      }
      let intact = bucket.objects
      for object in intact.keys where object.hasPrefix("data/\(name.text)/") && !object.contains("list") {
        let middle = (intact[object]?.content.count ?? 0) / 2
        bucket.objects[object]?.content[middle] ^= 4
      }
      return { [bucket] in bucket.objects = intact }
    }
    let repair = try damage(Self.name(1))
    #expect(refusal(2).contains("damaged"), "\(refusal(2))")
    #expect(!FileManager.default.fileExists(atPath: target))
    try restore(0, of: place, to: "r0")
    try repair()
    try restore(2, of: place, to: "r2")
    #expect(try contents(directory.file("r2")) == contents(data))

    if kind == "folder" {
      try FileManager.default.removeItem(atPath: directory.file("places/\(Self.name(1).text)"))
    } else {
      bucket.objects["manifests/\(Self.name(1).text).json"] = nil
    }
    #expect(refusal(2).contains("needs \(Self.name(1).text), which"), "\(refusal(2))")
    #expect(!FileManager.default.fileExists(atPath: target))
    try place.remove([Self.name(2)])
    #expect(try place.names() == [Self.name(0)])
  }

  /// A bucket that fails at any request keeps its backups, and the next backup continues them.
  @Test func aFailureLosesNothing() throws {
    let server = try serve()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let place = place("bucket")
    try write(client, "c/d", 0)
    try make(0, since: nil, in: place)
    for failing in 0..<20 {
      try write(client, "c/d", failing + 1)
      var left = failing
      bucket.beforePut = { _ in
        guard left > 0 else { throw CommandFailure.failed("the store is full") }
        left -= 1
      }
      let isMade = (try? make(1, since: 0, in: place)) != nil
      bucket.beforePut = { _ in }
      #expect(try place.names().count == (isMade ? 2 : 1), "put \(failing)")
      guard isMade else { continue }
      #expect(failing > 2)
      break
    }
    try restore(1, of: place, to: "r")
    #expect(try contents(directory.file("r")) == contents(data))
    // Another process removes the parent while the backup is made.
    bucket.beforePut = { [bucket] object in
      if object.hasSuffix("/list.0") { bucket.objects["manifests/\(Self.name(1).text).json"] = nil }
    }
    #expect(throws: CommandFailure.self) { try make(2, since: 1, in: place) }
    bucket.beforePut = { _ in }
    #expect(try place.names() == [Self.name(0)])
  }

  @Test func theVerbsMakeAndRestoreChains() throws {
    let server = try serve()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let store = try HearthProcess.inMemory()
    defer { store.process.stop() }
    let made = try TestHTTPClient(port: store.port).send(
      "POST", "/storage/v1/b?project=store", headers: Self.owner, body: Array(#"{"name": "backups"}"#.utf8))
    try #require(made.status == 200)
    for place in [
      [directory.file("places")], ["gs://backups/shop", "--endpoint", "http://127.0.0.1:\(store.port)"],
    ] {
      func verb(_ words: String...) throws -> (exit: ProcessExit?, output: String) {
        try HearthBinary.run(["backups", words[0]] + place + Array(words.dropFirst()))
      }
      try write(client, "c/d", 1)
      let first = try verb("create", "--data", data, "--incremental")
      #expect(first.exit == .code(0) && first.output.contains("stored the backup"), "\(first.output)")
      try write(client, "c/d", 2)
      let second = try verb("create", "--data", data, "--full-every", "7d", "--keep", "1")
      #expect(
        second.exit == .code(0) && second.output.contains("stored the incremental backup")
          && !second.output.contains("removed"), "\(second.output)")
      let list = try verb("list").output.split(separator: "\n").map(String.init)
      try #require(list.count == 2)
      let names = list.map { String($0.prefix { $0 != " " }) }
      #expect(list[0].hasSuffix("full") && list[1].hasSuffix("since \(names[0])"), "\(list)")
      #expect(try verb("list", "--json").output.contains(#""parent": "\#(names[0])""#))
      let needed = try verb("delete", names[0])
      #expect(needed.exit == .code(1) && needed.output.contains("\(names[1]) needs \(names[0])"), "\(needed.output)")
      try write(client, "c/d", 3)
      let part = try verb("restore", "--only", "c/d", "--data", data, "--yes")
      #expect(part.exit == .code(0), "\(part.output)")
      #expect(try run("get", "c/d", "--data", data, "--project", "demo").contains(#""n": 2"#))
      let target = directory.file("r\(place.count)")
      #expect(try verb("restore", target, "--quiet").exit == .code(0))
      #expect(try run("get", "c/d", "--data", target, "--project", "demo").contains(#""n": 2"#))
      let replaced = try verb("restore", target, "--database", "(default)", "--name", names[1])
      #expect(replaced.exit == .code(0), "\(replaced.output)")
      // The restored directory has another identity and another incarnation, so it begins with a full backup.
      let other = try verb("create", "--data", target, "--incremental")
      #expect(other.output.contains("stored the backup"), "\(other.output)")
      // Declared indexes are not in the change log.
      let indexes = try directory.write(
        "indexes.json",
        #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": "#
          + #"[{"fieldPath": "n", "order": "ASCENDING"}, {"fieldPath": "t", "order": "ASCENDING"}]}]}"#)
      let restarted = try HearthProcess(
        arguments: ["--emulator", "--data", target, "--project", "demo", "--indexes", indexes])
      restarted.process.stop()
      let whole = try verb("create", "--data", target, "--incremental")
      #expect(whole.output.contains("as a whole: its indexes changed"), "\(whole.output)")
      #expect(try verb("delete", names[0], names[1]).exit == .code(0))
    }
    try fail("backups", "create", directory.file("places"), "--data", data, "--full-every", "soon", with: "full-every")
  }

  @Test func theServerMakesIncrementalBackups() throws {
    let local = ["--data", try directory.makeDataDirectory("d"), "--project", "demo"]
    #expect(try HearthBinary.run(["set", "c/d", #"{"n": 1}"#] + local).exit == .code(0))
    let place = directory.file("places")
    _ = try run("backups", "create", place, "--data", data, "--quiet")
    let all = try FileManager.default.contentsOfDirectory(atPath: place)
    let origin = try directory.text("d/backup-id").prefix(8)
    let recent = BackupName(
      Timestamp(uncheckedMicroseconds: BackupChoice.now().microseconds - 7_200_000_000), origin: String(origin))
    try FileManager.default.moveItem(atPath: "\(place)/\(all[0])", toPath: "\(place)/\(recent.text)")
    let words = ["--emulator", "--backup-to", place, "--backup-every", "1h", "--backup-full-every", "7d"] + local
    let server = try HearthProcess(arguments: words)
    defer { server.process.stop() }
    let folder = BackupFolder(place)
    #expect(OtherProcess.eventually { (try? folder.names().count) == 2 })
    let newest = try #require(try folder.names().last)
    #expect(try folder.parent(of: newest) == recent)
    try fail("serve", "--emulator", "--backup-full-every", "7d", with: "needs --backup-to")
  }
}
