import Accounts
import Basics
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// Quotas of projects, over each API.
@Suite struct ProjectQuotaTests {
  /// Returns the configuration of a project with quotas.
  private static func source(
    _ id: String, _ server: ProjectsServer, _ limits: [Quota.Kind: Int], fingerprint: String = "1"
  ) -> ProjectSource {
    var source = ProjectsServer.source(id, in: server.directory, fingerprint)
    source.configuration = source.configuration.map { configuration in
      var configuration = configuration
      for (kind, limit) in limits { configuration.quotas[kind] = limit }
      return configuration
    }
    return source
  }

  private static func setQuotas(_ limits: [Quota.Kind: Int], of id: String, _ server: ProjectsServer) {
    server.reload { sources in
      guard let index = sources.firstIndex(where: { $0.id == id }) else { return }
      sources[index] = source(id, server, limits)
    }
  }

  /// Writes a document of about `size` bytes.
  private static func write(
    _ server: ProjectsServer, _ project: String, _ id: String, _ size: Int
  ) throws -> TestServer.Response {
    try server.request(
      "PATCH", "\(ProjectsServer.documents(project))/notes/\(id)",
      #"{"fields": {"a": {"stringValue": "\#(String(repeating: "x", count: size))"}}}"#)
  }

  private static func isOverQuota(_ reply: TestServer.Response, _ option: String) -> Bool {
    reply.status == 429 && reply.json("error", "status") == "RESOURCE_EXHAUSTED"
      && reply.message.contains("Project red has reached its quota") && reply.message.contains(option)
  }

  @Test func documentsBeyondTheQuotaAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    Self.setQuotas([.documents: 5000], of: "red", server)
    #expect(try Self.write(server, "red", "a", 2000).status == 200)
    #expect(try Self.write(server, "red", "b", 2000).status == 200)
    let refused = try Self.write(server, "red", "c", 2000)
    #expect(Self.isOverQuota(refused, "quota-documents"), "\(refused.text)")
    // Other projects, reads, deletes, and writes that do not grow.
    #expect(try Self.write(server, "blue", "c", 200_000).status == 200)
    #expect(try server.request("GET", "\(ProjectsServer.documents("red"))/notes/a").status == 200)
    #expect(try Self.write(server, "red", "a", 2000).status == 200)
    #expect(try Self.write(server, "red", "a", 1000).status == 200)
    #expect(try server.request("DELETE", "\(ProjectsServer.documents("red"))/notes/b").status == 200)
    #expect(try Self.write(server, "red", "c", 2000).status == 200)
    // Administrators too.
    let batch = try server.request(
      "POST", "\(ProjectsServer.documents("red")):batchWrite",
      #"{"writes": [{"update": {"name": "projects/red/databases/(default)/documents/notes/z", "#
        + #""fields": {"a": {"stringValue": "\#(String(repeating: "x", count: 5000))"}}}}]}"#,
      server.administrator("red"))
    #expect(batch.status == 200 && batch.json("status", 0, "code", as: Int.self) == 8, "\(batch.text)")
    // A larger quota is in force after a reload, which interrupts nothing.
    Self.setQuotas([.documents: 50_000], of: "red", server)
    #expect(try Self.write(server, "red", "b", 2000).status == 200)
    let metrics = try server.request("GET", "/metrics", nil, server.administrator("red"), ("Host", "red.example.com"))
      .text
    #expect(metrics.contains(#"hearth_quota_limit{project="red",quota="documents"} 50000"#), "\(metrics)")
    #expect(metrics.contains(#"hearth_quota_refused_total{project="red",quota="documents"} 2"#))
  }

  @Test(arguments: [HearthConfiguration.Mode.production, .emulator])
  func quotasHoldAfterARestart(mode: HearthConfiguration.Mode) throws {
    let directory = try TemporaryDirectory()
    func start() throws -> TestServer {
      try TestServer(mode) {
        $0.storage = .directory(directory.file("data"))
        // Nobody declares the databases of an emulator.
        if mode == .production { $0.databases = ["(default)", "other"] }
        $0.quotas[.documents] = 5000
        $0.quotas[.accounts] = 2
      }
    }
    func write(_ server: TestServer, _ database: String, _ id: String) throws -> TestServer.Response {
      try server.request(
        "PATCH", "/v1/projects/p/databases/\(database)/documents/c/\(id)",
        #"{"fields": {"a": {"stringValue": "\#(String(repeating: "x", count: 2000))"}}}"#,
        headers: [
          (
            "Authorization",
            mode == .emulator ? "Bearer owner" : "Bearer \(server.server.accounts.serviceKeys.localAccessToken())"
          )
        ])
    }
    func signUp(_ server: TestServer) throws -> TestServer.Response {
      try server.call(
        "POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k", "{}",
        headers: [("Content-Type", "application/json")])
    }
    weak var accounts: AccountStore?
    do {
      let server = try start()
      accounts = server.server.accounts
      #expect(try write(server, "(default)", "a").status == 200)
      #expect(try write(server, "other", "a").status == 200)
      #expect(try write(server, "other", "b").status == 429)
      for _ in 0..<2 { #expect(try signUp(server).status == 200) }
      let refused = try signUp(server)
      #expect(refused.status == 429, "\(refused.text)")
      #expect(refused.message.hasPrefix("QUOTA_EXCEEDED : Project p has reached its quota of 2 accounts."))
    }
    // The worker of the last request holds the accounts for a moment after its response, and then closes their file.
    #expect(try ProjectReloadTests.eventually { accounts == nil })
    var restarted: TestServer?
    #expect(
      try ProjectReloadTests.eventually {
        restarted = try? start()
        return restarted != nil
      })
    let server = try #require(restarted)
    // The databases of the project together.
    #expect(try write(server, "(default)", "b").status == 429)
    #expect(try signUp(server).status == 429)
    let first = try #require(try server.server.accounts.users.users(after: nil, limit: 1).first)
    _ = try server.server.accounts.users.remove(first.uid, now: 0)
    #expect(try signUp(server).status == 200)
    #expect(try signUp(server).status == 429)
  }

  @Test func concurrentWritersFillTheQuotaExactly() throws {
    let server = try ProjectsServer(["red"])
    Self.setQuotas([.documents: 100_000], of: "red", server)
    let written = Mutex(0)
    let statuses = Mutex(Set<Int>())
    onThreads(4) { thread in
      for round in 0..<40 {
        guard let reply = try? Self.write(server, "red", "\(thread)-\(round)", 1000) else { continue }
        if reply.status == 200 { written.withLock { $0 += 1 } }
        statuses.withLock { _ = $0.insert(reply.status) }
      }
    }
    #expect(statuses.withLock { $0 } == [200, 429])
    // A document has about 1,050 bytes.
    #expect((90...99).contains(written.withLock { $0 }), "\(written.withLock { $0 })")
  }

  @Test func filesBeyondTheQuotaAreRefused() throws {
    let server = try ProjectsServer(["red"])
    Self.setQuotas([.files: 10_000], of: "red", server)
    let user = try server.user("red")
    func upload(_ name: String, _ size: Int) throws -> TestServer.Response {
      try server.server.request(
        "POST", "/v0/b/red.appspot.com/o?uploadType=media&name=own%2Fann%2F\(name)",
        bytes: [UInt8](repeating: 1, count: size), headers: [user, ("Content-Type", "text/plain")])
    }
    #expect(try upload("a", 6000).status == 200)
    let refused = try upload("b", 6000)
    // Firebase's SDKs report this status as storage/quota-exceeded.
    #expect(refused.status == 402 && refused.message.contains("quota of 10000 bytes of files"), "\(refused.text)")
    let administrator = try server.administrator("red")
    let cloud = try server.server.request(
      "POST", "/upload/storage/v1/b/red.appspot.com/o?uploadType=media&name=c",
      bytes: [UInt8](repeating: 1, count: 6000), headers: [administrator, ("Content-Type", "text/plain")])
    #expect(cloud.status == 403 && cloud.json("error", "errors", 0, "reason") == "quotaExceeded", "\(cloud.text)")
    let copy = try server.server.request(
      "POST", "/storage/v1/b/red.appspot.com/o/own%2Fann%2Fa/rewriteTo/b/red.appspot.com/o/copy", "{}",
      headers: [administrator, ("Content-Type", "application/json")])
    #expect(copy.status == 403, "\(copy.text)")
    // A resumable upload that cannot fit ends before its content arrives.
    let resumable = try server.server.request(
      "POST", "/upload/storage/v1/b/red.appspot.com/o?uploadType=resumable&name=c", "{}",
      headers: [administrator, ("Content-Type", "application/json"), ("X-Upload-Content-Length", "6000")])
    #expect(resumable.status == 403, "\(resumable.text)")
    // Replacing it, reading it and deleting it.
    #expect(try upload("a", 9000).status == 200)
    #expect(
      try server.request("GET", "/v0/b/red.appspot.com/o/own%2Fann%2Fa?alt=media", nil, user).body.count == 9000)
    #expect(try server.request("DELETE", "/v0/b/red.appspot.com/o/own%2Fann%2Fa", nil, user).status == 204)
    #expect(try upload("b", 6000).status == 200)
    let metrics = try server.request("GET", "/metrics", nil, administrator, ("Host", "red.example.com")).text
    #expect(metrics.contains(#"hearth_quota_used{project="red",quota="files"} 6000"#), "\(metrics)")
  }

  @Test func streamsBeyondTheQuotaAreRefused() throws {
    let server = try ProjectsServer(["p"])
    Self.setQuotas([.streams: 2], of: "p", server)
    let grpc = try GRPCConnection(port: server.server.port)
    func open() -> UInt32 {
      let stream = grpc.open("Listen", headers: [("google-cloud-resource-prefix", "projects/p/databases/(default)")])
      grpc.send(GRPCListenTests.documents(2, "notes/n"), on: stream)
      return stream
    }
    let first = open()
    #expect(try grpc.next(on: first) != nil)
    let second = open()
    #expect(try grpc.next(on: second) != nil)
    let refused = try grpc.end(of: open())
    #expect(refused.status == 8, "\(refused)")
    grpc.cancel(first)
    #expect(
      try ProjectReloadTests.eventually {
        let stream = open()
        defer { grpc.cancel(stream) }
        return try grpc.next(on: stream) != nil
      })
  }

  @Test func requestsBeyondTheQuotaAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    Self.setQuotas([.requests: 3], of: "red", server)
    let target = "\(ProjectsServer.documents("red"))/notes/n"
    for _ in 0..<3 { #expect(try server.request("GET", target).status == 404) }
    let refused = try server.request("GET", target)
    #expect(Self.isOverQuota(refused, "quota-requests") && refused.header("retry-after") != nil, "\(refused.text)")
    #expect(try server.request("GET", target, nil, server.administrator("red")).status == 429)
    #expect(try server.note("blue").status == 404)
    #expect(try server.request("GET", "/healthz").status == 200)
    Self.setQuotas([:], of: "red", server)
    #expect(try server.request("GET", target).status == 404)
  }

  @Test func quotasOfTheServerHoldForProjectsThatSetNone() throws {
    let loaded = Mutex(QuotaLimits())
    let directory = try TemporaryDirectory()
    let server = try TestServer(.production) {
      $0.storage = .directory(directory.file("data"))
      $0.loadQuotas = { loaded.withLock { $0 } }
    }
    func signUp() throws -> Int {
      try server.call(
        "POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k", "{}",
        headers: [("Content-Type", "application/json")]
      ).status
    }
    #expect(try signUp() == 200)
    loaded.withLock { $0[.accounts] = 1 }
    #expect(try signUp() == 200, "nothing changes before the reload")
    server.server.reload()
    #expect(try signUp() == 429)
    loaded.withLock { $0 = QuotaLimits() }
    server.server.reload()
    #expect(try signUp() == 200)
  }
}
