import DocumentModel
import Foundation
import Glibc
import HearthServer
import Testing
import TestSupport

@testable import HearthCLI

/// Every commit of a server is copied after a backup, and every moment can be restored.
@Suite(.needs(.hearth)) struct BackupFollowerTests {
  private static let owner = [("Authorization", "Bearer owner")]
  private let directory: TemporaryDirectory
  private let bucket = MemoryBucket()
  /// The time by which the clock of followers is ahead, in seconds.
  private let aheadSeconds = Observed<Int64>(0)

  init() throws { directory = try TemporaryDirectory() }

  private var data: String { directory.file("d") }
  private var folder: String { directory.file("places") }

  private func serve() throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"], hasLog: true)
  }

  private func place(_ kind: String) -> any BackupPlace {
    kind == "folder" ? BackupFolder(folder) : BackupBucket(bucket) { BackupChoice.now() }
  }

  private func follower(_ place: any BackupPlace, _ words: String..., notes: Observed<[String]>? = nil) throws
    -> BackupFollower
  {
    try BackupFollower(
      of: data, to: place, Arguments(words + ["--", "x"], for: .backupsFollow),
      now: { [aheadSeconds] in
        Timestamp(uncheckedMicroseconds: BackupChoice.now().microseconds + 1_000_000 * aheadSeconds.value)
      },
      report: { [data] event in notes?.update { $0.append(event.text(of: data)) } })
  }

  /// Stores a document with a number, and returns the time of the commit.
  @discardableResult private func write(
    _ server: HearthProcess, _ number: Int, database: String = "(default)"
  ) throws -> Timestamp {
    let reply = try TestHTTPClient(port: server.port).send(
      "PATCH", "/v1/projects/demo/databases/\(database)/documents/c/d\(number)", headers: Self.owner,
      body: Array(#"{"fields": {"n": {"integerValue": "\#(number)"}}}"#.utf8))
    let text = String(decoding: reply.body, as: UTF8.self)
    let time = try #require(text.firstMatch(of: /"updateTime": ?"([^"]+)"/)?.1, "\(text)")
    return try #require(Timestamp(rfc3339: time.utf8))
  }

  /// The number of groups of commits so far.
  private func groups(_ server: HearthProcess) throws -> Int {
    let text = try TestHTTPClient(port: server.port).send("GET", "/metrics", headers: Self.owner).text
    return try #require(text.firstMatch(of: /hearth_commit_group_size_count\S* (\d+)/).flatMap { Int($0.1) }, "\(text)")
  }

  private func kill(_ server: HearthProcess) {
    server.process.send(signal: SIGKILL)
    _ = server.process.waitForExit(timeoutSeconds: 30)
  }

  /// Restores a moment and returns the numbers of the documents of a database.
  private func restore(
    _ moment: Timestamp, of place: any BackupPlace, database: String = "(default)"
  ) throws -> [Int] {
    let target = directory.file("r-\(UUID())")
    if place is BackupFolder {
      _ = try run("backups", "restore", folder, target, "--at", moment.description)
    } else {
      _ = try MomentRestore(moment, place.names(), in: place).run(to: target) { _ in }
    }
    _ = try run("check", target)
    let text = try run(
      "export", "c", "--data", target, "--project", "demo", "--database", database, "--format", "ndjson")
    try FileManager.default.removeItem(atPath: target)
    return text.matches(of: /"n": ?(\d+)/).compactMap { Int($0.1) }.sorted()
  }

  private func run(_ words: String...) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "hearth \(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  private func refusal(_ moment: Timestamp, of place: any BackupPlace) -> String {
    do {
      _ = try MomentRestore(moment, place.names(), in: place)
      return "no error"
    } catch { return CommandFailure(error).message }
  }

  private static func before(_ moment: Timestamp) -> Timestamp {
    Timestamp(uncheckedMicroseconds: moment.microseconds - 1)
  }

  /// Servers and followers are killed at random, and continue. Backups are made meanwhile, full and incremental ones. Each
  /// commit can be restored, and the moment before it.
  @Test(.timeLimit(.minutes(10)), arguments: ["folder", "bucket"]) func everyCommitIsRestored(kind: String) throws {
    let seed: UInt64 = kind == "folder" ? 71 : 72
    var random = SplitMix(seed: seed)
    let place = place(kind)
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var followed: BackupFollower? = try follower(place, "--incremental", "--every", "3s")
    try followed?.step()
    var times = [try write(server, 1)]
    for number in 2..<40 {
      times.append(try write(server, number))
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        kill(server)
        server = try serve()
      case 1:
        server.process.stop()
        try followed?.step()
        server = try serve()
      case 2:
        followed = nil
        followed = try follower(place, "--incremental", "--every", "3s")
        try followed?.step()
      case 3: break
      default: try followed?.step()
      }
    }
    try followed?.step()
    #expect(try place.names().count >= 2, "seed \(seed)")
    for (index, time) in times.enumerated() where index.isMultiple(of: 5) || index == times.count - 1 {
      #expect(try restore(time, of: place) == Array(0...index + 1), "seed \(seed), commit \(index)")
      #expect(try restore(Self.before(time), of: place) == Array(0...index), "seed \(seed), before commit \(index)")
    }
  }

  /// One request makes several commits, which the server writes as one group. Each of them can be restored.
  @Test func eachCommitOfAGroupIsRestored() throws {
    let place = place("folder")
    let server = try serve()
    defer { server.process.stop() }
    for number in 1...2 { try write(server, number) }
    var followed = try follower(place)
    try followed.step()
    let root = "projects/demo/databases/(default)/documents"
    func set(_ id: String, _ number: Int) -> String {
      #"{"update": {"name": "\#(root)/\#(id)", "fields": {"n": {"integerValue": "\#(number)"}}}}"#
    }
    // New collections and a new field come between the others. The seventh write fails.
    let other = #"{"update": {"name": "\#(root)/e/x", "fields": {"other": {"stringValue": "x"}}}}"#
    let writes = [
      set("c/a", 3), set("c/d1", 4), other, #"{"delete": "\#(root)/c/d2"}"#, set("c/b", 5), set("d/a/c/x", 9),
      String(set("c/y", 6).dropLast()) + #", "currentDocument": {"exists": true}}"#, set("c/z", 7),
    ]
    let states = [[1, 2, 3], [2, 3, 4], [2, 3, 4], [3, 4], [3, 4, 5], [3, 4, 5], [], [3, 4, 5, 7]]
    let groupsBefore = try groups(server)
    let reply = try TestHTTPClient(port: server.port).send(
      "POST", "/v1/\(root):batchWrite", headers: Self.owner,
      body: Array(#"{"writes": [\#(writes.joined(separator: ","))]}"#.utf8))
    let results = try JSONNode(parsing: reply.body)["writeResults"]?.elements ?? []
    let times = results.map { $0["updateTime"]?.stringValue.flatMap { Timestamp(rfc3339: $0.utf8) } }
    try #require(times.count == writes.count && times[6] == nil, "\(reply.text)")
    #expect(try groups(server) == groupsBefore + 1)
    let last = try write(server, 8)
    try followed.step()
    for (time, state) in zip(times, states) {
      guard let time else { continue }
      #expect(try restore(time, of: place) == state, "\(time)")
    }
    #expect(try restore(Self.before(try #require(times[0])), of: place) == [1, 2])
    #expect(try restore(Self.before(try #require(times[4])), of: place) == [3, 4])
    #expect(try restore(last, of: place) == [3, 4, 5, 7, 8])
  }

  /// A follower that is killed while it writes leaves an incomplete record, which the next one cuts.
  @Test(arguments: [1, 20, 100]) func anIncompleteRecordIsCut(cutBytes: Int) throws {
    let place = place("folder")
    let server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    var times: [Timestamp] = []
    var name: BackupName?
    try {
      var followed = try follower(place)
      try followed.step()
      for number in 1...3 { times.append(try write(server, number)) }
      try followed.step()
      name = try place.names().last
    }()
    let backup = try #require(name).text
    let file = URL(fileURLWithPath: "\(folder)/\(backup)/log/0/")
    let names = try FileManager.default.contentsOfDirectory(atPath: file.path).sorted()
    let last = file.appendingPathComponent(try #require(names.last))
    let content = try Data(contentsOf: last)
    try content.dropLast(cutBytes).write(to: last)
    #expect(refusal(times[2], of: place).contains("were copied until"), "\(refusal(times[2], of: place))")
    #expect(try restore(times[1], of: place) == [0, 1, 2])
    var followed = try follower(place)
    try followed.step()
    #expect(try Data(contentsOf: last) == content, "the commit was copied again")
    times.append(try write(server, 4))
    try followed.step()
    #expect(try place.names().count == 1)
    #expect(try restore(times[2], of: place) == [0, 1, 2, 3])
    #expect(try restore(times[3], of: place) == [0, 1, 2, 3, 4])
    // A damaged record in the middle is not the end.
    var damaged = try Data(contentsOf: last)
    damaged[60] ^= 1
    try damaged.write(to: last)
    #expect(refusal(times[3], of: place).contains("were copied until"))
  }

  @Test func aGapBeginsANewBackup() throws {
    let place = place("bucket")
    var server = try serve()
    defer { server.process.stop() }
    try write(server, 0)
    let notes = Observed<[String]>([])
    var first: Timestamp?
    try {
      var followed = try follower(place, notes: notes)
      try followed.step()
      first = try write(server, 1)
      try followed.step()
    }()
    // Nobody holds the commits that a stopped server moves to its data file.
    let lost = try write(server, 2)
    server.process.stop()
    server = try serve()
    try write(server, 3)
    _ = OtherProcess.eventually { BackupName(BackupChoice.now()) > BackupName(lost) }
    var followed: BackupFollower? = try follower(place, "--incremental", notes: notes)
    try followed?.step()
    #expect(notes.value.last?.contains("no longer continues the last copied commit") == true, "\(notes.value)")
    let last = try write(server, 4)
    // A database of its own needs a backup too.
    try write(server, 5, database: "second")
    try followed?.step()
    #expect(notes.value.last?.contains("projects/demo/databases/second is new") == true, "\(notes.value)")
    let newest = try write(server, 6, database: "second")
    // The other database has no later commit. After a while it is known that none is missing.
    try followed?.step()
    #expect(refusal(newest, of: place).contains("were copied until"))
    aheadSeconds.value = 20
    try followed?.step()
    let covered = try #require(first)
    #expect(try restore(covered, of: place) == [0, 1])
    #expect(refusal(lost, of: place).contains("cannot be restored; the next backup is"), "\(refusal(lost, of: place))")
    #expect(try restore(last, of: place) == [0, 1, 2, 3, 4])
    #expect(try restore(newest, of: place, database: "second") == [5, 6])
    let early = Timestamp(uncheckedMicroseconds: lost.microseconds - 86_400_000_000)
    #expect(refusal(early, of: place).contains("no backup of a time before"))
    let late = Timestamp(uncheckedMicroseconds: lost.microseconds + 86_400_000_000)
    #expect(refusal(late, of: place).contains("were copied until"))
    // An ordinary backup has no log. A process can open a database only once.
    followed = nil
    let plain = BackupName(BackupChoice.now(), origin: "0badcafe")
    _ = try place.make(plain, of: DirectoryReader(data), since: nil) { _ in }
    do {
      _ = try MomentRestore(late, [plain], in: place)
      Issue.record("there is no log")
    } catch { #expect(CommandFailure(error).message.contains("were not copied by `hearth backups follow`")) }
  }

  /// The verb itself, killed and started again beside a server that is written to.
  @Test(.timeLimit(.minutes(5))) func theVerbContinuesAfterAKill() throws {
    let place = place("folder")
    let server = try serve()
    defer { server.process.stop() }
    var time = try write(server, 0)
    func start() throws -> ServerProcess {
      let process = try HearthBinary.start(["backups", "follow", folder, "--data", data])
      _ = try process.waitForLine(prefix: "following", timeoutSeconds: 60)
      return process
    }
    for round in 0..<3 {
      let process = try start()
      for number in 0..<10 { time = try write(server, 1 + 10 * round + number) }
      if round < 2 {
        process.send(signal: SIGKILL)
        _ = process.waitForExit(timeoutSeconds: 30)
      } else {
        let other = try HearthBinary.run(["backups", "follow", folder, "--data", data])
        #expect(other.exit == .code(ExitCode.busy) && other.output.contains("stop it first"), "\(other.output)")
        #expect(OtherProcess.eventually { refusal(time, of: place) == "no error" })
        process.stop()
      }
    }
    #expect(try place.names().count == 1)
    #expect(try restore(time, of: place) == Array(0...30))
    let both = try HearthBinary.run(["backups", "restore", folder, "x", "--at", "15m", "--name", "y"])
    #expect(both.exit == .code(64), "\(both.output)")
  }

  /// A server copies its commits itself. No moment is missing after stops and kills of the server, because the process
  /// that copies outlives the server for a moment.
  @Test(.timeLimit(.minutes(5))) func aServerCopiesItsCommits() throws {
    let place = place("folder")
    // A new database needs a backup, so it exists before the first one.
    let first = try serve()
    try write(first, 0)
    first.process.stop()
    func serveAndFollow() throws -> HearthProcess {
      try HearthProcess(
        arguments: [
          "--emulator", "--data", data, "--project", "demo", "--log", "json", "--backup-to", folder, "--backup-follow",
          "--backup-full-every", "7d",
        ])
    }
    var times: [Timestamp] = []
    for round in 0..<4 {
      let server = try serveAndFollow()
      defer { server.process.stop() }
      _ = try server.process.waitForLine("the follower", timeoutSeconds: 60) {
        $0.contains(round == 0 ? "backup.completed" : "backup.continued")
      }
      for number in 0..<5 { times.append(try write(server, 5 * round + number + 1)) }
      if round.isMultiple(of: 2) { kill(server) }
    }
    let last = try #require(times.last)
    #expect(OtherProcess.eventually { refusal(last, of: place) == "no error" })
    #expect(try place.names().count == 1)
    for (index, time) in times.enumerated() where index % 5 == 4 || index == 7 {
      #expect(try restore(time, of: place) == Array(0...index + 1))
    }
  }

  @Test(arguments: [
    FollowerEvent.made(backup: "b", isIncremental: true, reason: "x \"y\" is new"),
    .made(backup: "b", isIncremental: false, reason: ""), .continued(backup: "b"), .ended(reason: "r"),
    .uncovered(database: "d"), .failed(message: "m"), .recovered,
  ])
  func eventsAreReadAsTheyWereWritten(event: FollowerEvent) {
    #expect(FollowerEvent(json: event.json()) == event)
    #expect(event.json().last == UInt8(ascii: "\n"))
  }
}
