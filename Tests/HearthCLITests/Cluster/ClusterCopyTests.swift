import Foundation
import Testing
import TestSupport

/// `hearth cluster copy`: a data directory with everything that a cluster has.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterCopyTests {
  private static let documents = ServedCluster.documents
  private static let bucket = "/v0/b/shop.appspot.com/o"
  private static let account = #"{"email": "ann@example.org", "password": "correct horse", "returnSecureToken": true}"#

  private static func copy(
    _ cluster: ServedCluster, _ path: String, key: String? = nil, _ options: String...
  ) throws -> (exit: ProcessExit?, output: String) {
    let key = key ?? cluster.directory.file("cluster.key")
    let run = try HearthBinary.run(["cluster", "copy", cluster.url, path, "--key", key] + options)
    return (run.exit, run.output)
  }

  private static func create(_ cluster: ServedCluster, _ id: String, bytes: Int = 1) throws {
    let text = String(repeating: "x", count: bytes)
    let made = try ServedCluster.send(
      cluster.ports[0], "POST", "\(documents)/items?documentId=\(id)",
      #"{"fields": {"text": {"stringValue": "\#(text)"}}}"#)
    #expect(made.status == 200, "\(made.text)")
  }

  private static func upload(_ cluster: ServedCluster, _ name: String, _ content: String) throws {
    let put = try ServedCluster.send(
      cluster.ports[0], "POST", "\(bucket)?uploadType=media&name=\(name)", content,
      headers: [("Content-Type", "text/plain")])
    #expect(put.status == 200, "\(put.text)")
  }

  /// The documents that a command finds in the directory.
  private static func exported(_ path: String) throws -> [String] {
    let run = try HearthBinary.run(["export", "--data", path, "--project", "shop"])
    #expect(run.exit == .code(0), "\(run.output)")
    let tree = try #require(JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
    return ((tree["items"] as? [String: Any])?.keys.map { $0 } ?? []).sorted()
  }

  @Test func aCopyHasEverythingAndContinues() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2, serving: ["--snapshot-log", "20K", "--kept-log", "1s"])
      let path = cluster.directory.file("copy")
      for number in 0..<5 { try Self.create(cluster, "a\(number)") }
      let signUp = "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=shop"
      #expect(try ServedCluster.send(cluster.ports[0], "POST", signUp, Self.account).status == 200)
      try Self.upload(cluster, "first.txt", "one")
      let first = try Self.copy(cluster, path)
      try #require(first.exit == .code(0), "\(first.output)")
      let lines = first.output.split(separator: "\n").map(String.init)
      #expect(lines.count == 3 && lines[0].hasPrefix("\(path) has the log up to entry "), "\(first.output)")
      #expect(lines[1] == "copied 1 file, 3 B from PostgreSQL", "\(first.output)")
      #expect(
        lines[2]
          == "to serve it alone: hearth serve --project shop --data \(path) --rules \(path)/deployed/rules "
          + "--storage-rules \(path)/deployed/storage-rules")
      #expect(try Self.exported(path) == ["a0", "a1", "a2", "a3", "a4"])

      // Only what is new, as the nodes wrote it and as they removed it.
      try Self.create(cluster, "b")
      try Self.upload(cluster, "second.txt", "second")
      #expect(try ServedCluster.send(cluster.ports[1], "DELETE", "\(Self.bucket)/first.txt").status == 204)
      let second = try Self.copy(cluster, path)
      #expect(second.exit == .code(0) && second.output.contains("copied 1 file, 6 B"), "\(second.output)")
      #expect(try Self.exported(path).last == "b")
      let checked = try HearthBinary.run(["check", path, "--quiet"])
      #expect(checked.exit == .code(0), "\(checked.output)")

      // The log does not reach back to the copy any more.
      var count = 0
      let isTruncated = try OtherProcess.eventually(secondsMax: 120) {
        for _ in 0..<20 {
          try Self.create(cluster, "c\(count)", bytes: 500)
          count += 1
        }
        return try cluster.status()["log"]?["first"]?.integerValue ?? 0 > 30
      }
      try #require(isTruncated)
      for node in cluster.nodes { node.process.send(signal: SIGKILL) }
      // No node runs.
      let third = try Self.copy(cluster, path)
      #expect(third.exit == .code(0), "\(third.output)")
      #expect(try Self.exported(path).count == 6 + count)
      let backups = cluster.directory.file("backups")
      let made = try HearthBinary.run(["backups", "create", backups, "--data", path, "--quiet"])
      #expect(made.exit == .code(0), "\(made.output)")
      try expectBackups(of: cluster, in: backups, items: 6 + count)

      let command = try #require(third.output.split(separator: "\n").last)
      let alone = try HearthProcess(arguments: command.split(separator: " ").dropFirst(6).map(String.init))
      let signIn = "/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword?key=shop"
      #expect(try ServedCluster.send(alone.port, "POST", signIn, Self.account).status == 200)
      let read = try ServedCluster.send(alone.port, "GET", "\(Self.bucket)/second.txt?alt=media")
      #expect(read.status == 200 && read.text == "second", "\(read.status)")
      #expect(try ServedCluster.send(alone.port, "GET", "\(Self.bucket)/first.txt?alt=media").status == 404)
      #expect(try ServedCluster.send(alone.port, "GET", "\(Self.documents)/items/b").status == 200)
      let busy = try Self.copy(cluster, path)
      #expect(busy.exit == .code(1) && busy.output.contains("is in use by"), "\(busy.output)")
      let written = try ServedCluster.send(alone.port, "POST", "\(Self.documents)/items?documentId=own", "{}")
      #expect(written.status == 200)
      alone.process.stop()
      let foreign = try Self.copy(cluster, path)
      let refusal = "so \(path) is not a copy any more; name another directory\n"
      #expect(foreign.exit == .code(1) && foreign.output.hasSuffix(refusal), "\(foreign.output)")
      // Nothing was changed, and its backups are not those of the cluster any more.
      #expect(try Self.exported(path).contains("own"))
      let own = try HearthBinary.run(["backups", "create", backups, "--data", path, "--json"])
      #expect(own.exit == .code(0), "\(own.output)")
      let origins = try JSONNode(parsing: Array(HearthBinary.run(["backups", "list", backups, "--json"]).output.utf8))
      let names = origins["backups"]?.elements.compactMap { $0["origin"]?.stringValue } ?? []
      #expect(names.count == 3 && Set(names).count == 2, "\(names)")
    }
  }

  /// A cluster whose PostgreSQL is lost begins anew from a backup.
  @Test func aBackupBecomesANewCluster() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      try Self.create(cluster, "a")
      try Self.upload(cluster, "first.txt", "one")
      let path = cluster.directory.file("copy")
      #expect(try Self.copy(cluster, path).exit == .code(0))
      let (backups, restored) = (cluster.directory.file("backups"), cluster.directory.file("restored"))
      for command in [
        ["backups", "create", backups, "--data", path], ["backups", "restore", backups, restored],
      ] {
        let run = try HearthBinary.run(command)
        #expect(run.exit == .code(0), "\(run.output)")
      }
      for source in [restored, path] {
        let second = try ServedCluster(nodes: 2, from: source)
        for port in second.ports {
          #expect(try ServedCluster.send(port, "GET", "\(Self.documents)/items/a").status == 200)
          let read = try ServedCluster.send(port, "GET", "\(Self.bucket)/first.txt?alt=media")
          #expect(read.status == 200 && read.text == "one", "\(source): \(read.status) \(read.text)")
        }
      }
    }
  }

  /// A copy on another machine continues the backups of the first one.
  private func expectBackups(of cluster: ServedCluster, in backups: String, items: Int) throws {
    try cluster.restart(0)
    try Self.create(cluster, "later")
    let other = cluster.directory.file("other")
    let copied = try Self.copy(cluster, other)
    #expect(copied.exit == .code(0), "\(copied.output)")
    let create = ["backups", "create", backups, "--data", other, "--json"]
    let none = try HearthBinary.run(create + ["--unless-newer-than", "1h"])
    #expect(none.exit == .code(0) && none.output.contains(#""made":false"#), "\(none.output)")
    let made = try HearthBinary.run(create + ["--incremental"])
    #expect(made.exit == .code(0), "\(made.output)")
    let list = try HearthBinary.run(["backups", "list", backups, "--json"]).output
    #expect(list.contains("incremental") && !made.output.contains("as a whole"), "\(list) \(made.output)")
    let restored = cluster.directory.file("restored")
    #expect(try HearthBinary.run(["backups", "restore", backups, restored, "--quiet"]).exit == .code(0))
    #expect(try Self.exported(restored).count == items + 1)
    #expect(try Self.exported(restored).contains("later"))
  }

  /// A copy is refused from its first step to its last, also without PostgreSQL.
  @Test func anUnfinishedCopyIsRefused() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      try Self.create(cluster, "a")
      try Self.upload(cluster, "first.txt", "one")
      let path = cluster.directory.file("copy")
      let backup = ["backups", "create", cluster.directory.file("backups"), "--data", path, "--quiet"]
      // The place of the files is another one, so the run ends before its last step.
      let place = cluster.directory.file("place")
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let failed = try Self.copy(cluster, path, key: nil, "--shared-files", place)
      #expect(failed.exit == .code(1) && failed.output.contains("is not the place of these files"), "\(failed.output)")
      let refused = try HearthBinary.run(backup)
      #expect(refused.exit == .code(1) && refused.output.contains("was interrupted"), "\(refused.output)")
      #expect(try Self.copy(cluster, path).exit == .code(0))
      #expect(try HearthBinary.run(backup).exit == .code(0))
      // A run that cannot begin leaves the copy as it is.
      let url = "postgres:///hearth?host=/nowhere"
      let key = cluster.directory.file("cluster.key")
      #expect(try HearthBinary.run(["cluster", "copy", url, path, "--key", key]).exit == .code(1))
      #expect(try Self.exported(path) == ["a"])
      // A run that was killed before the first data file.
      for name in try FileManager.default.contentsOfDirectory(atPath: path)
      where name != "FORMAT" && name != "cluster-copy" {
        try FileManager.default.removeItem(atPath: "\(path)/\(name)")
      }
      let text = try String(contentsOfFile: "\(path)/cluster-copy", encoding: .utf8)
      try Data(text.replacing("whole", with: "unfinished").utf8).write(to: URL(filePath: "\(path)/cluster-copy"))
      #expect(try HearthBinary.run(backup).exit == .code(1))
      #expect(try Self.copy(cluster, path).exit == .code(0))
      #expect(try Self.exported(path) == ["a"])
    }
  }

  /// The files of a killed node are as those of a copy that was interrupted.
  @Test func anInterruptedCopyIsRefusedAndContinues() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      let path = cluster.directory.file("node1")
      for number in 0..<3 { try Self.create(cluster, "a\(number)") }
      let node = try Self.copy(cluster, path)
      #expect(node.exit == .code(1) && node.output.contains("is not a copy of a cluster"), "\(node.output)")
      cluster.nodes[0].process.send(signal: SIGKILL)
      _ = cluster.nodes[0].process.waitForExit(timeoutSeconds: 30)
      let whole = cluster.directory.file("whole")
      #expect(try Self.copy(cluster, whole).exit == .code(0))
      try FileManager.default.removeItem(atPath: "\(path)/cluster-node")
      try FileManager.default.copyItem(atPath: "\(whole)/cluster-copy", toPath: "\(path)/cluster-copy")
      for command in [["export", "--project", "shop"], ["serve", "--port", "0", "--project", "shop"]] {
        let run = try HearthBinary.run(command + ["--data", path])
        #expect(run.exit == .code(1), "\(run.output)")
        #expect(run.output.contains("\(path) is a copy of a cluster that was interrupted"), "\(run.output)")
      }
      let continued = try Self.copy(cluster, path, key: nil, "--quiet")
      #expect(continued.exit == .code(0) && continued.output.isEmpty, "\(continued.output)")
      #expect(try Self.exported(path) == ["a0", "a1", "a2"])
      #expect(try Self.exported(whole) == ["a0", "a1", "a2"])
    }
  }

  @Test func otherDirectoriesAndKeysAreRefused() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      try Self.create(cluster, "a")
      let other = cluster.directory.file("other.key")
      let second = try cluster.postgres.makeDatabase("second")
      let made = try HearthBinary.run([
        "cluster", "init", second, "--project", "shop", "--accept-loss", "--key", other,
      ])
      try #require(made.exit == .code(0), "\(made.output)")
      let path = cluster.directory.file("copy")
      let wrong = try Self.copy(cluster, path, key: other)
      #expect(wrong.exit == .code(1) && wrong.output.contains("key"), "\(wrong.output)")
      #expect(!FileManager.default.fileExists(atPath: path))
      let used = cluster.directory.file("used")
      try FileManager.default.createDirectory(atPath: used, withIntermediateDirectories: true)
      try Data("x".utf8).write(to: URL(filePath: "\(used)/x"))
      let full = try Self.copy(cluster, used)
      #expect(full.exit == .code(1) && full.output.contains("\(used) is not empty"), "\(full.output)")
      #expect(try Self.copy(cluster, path).exit == .code(0))
      let mixed = try HearthBinary.run(["cluster", "copy", second, path, "--key", other])
      #expect(mixed.exit == .code(1) && mixed.output.contains("is a copy of another cluster"), "\(mixed.output)")
      #expect(try Self.exported(path) == ["a"])
    }
  }
}
