import Foundation
import Glibc
import Testing
import TestSupport

/// The verbs with `--data` while a production server with TLS uses the directory. Its certificate is not valid for the
/// address on which it listens, and no verb has a token.
@Suite(.needs(.hearth), .needs(.tool(.openssl)))
struct AdminSocketVerbTests {
  private final class Session {
    let directory: TemporaryDirectory
    let process: ServerProcess
    let url: String
    var data: String { directory.file("data") }
    var socket: String { directory.file("data/run/admin.sock") }

    init(_ more: [String] = ["--public-url", "https://db.example.com/"]) throws {
      directory = try TemporaryDirectory()
      let certificate = try TestAuthority().issue(for: "DNS:db.example.com")
      let rules = try directory.write(
        "a.rules",
        """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents { match /users/{uid} { allow read: if request.auth.uid == uid; } }
        }
        """)
      process = try HearthBinary.start(
        [
          "serve", "--port", "0", "--data", directory.file("data"), "--project", "shop", "--rules", rules, "--tls-cert",
          certificate.file, "--tls-key", certificate.keyFile,
        ] + more)
      url = try process.waitForLine(prefix: "hearth: listening on ", timeoutSeconds: 30)
    }

    deinit { process.stop() }

    func run(_ words: [String]) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(words + ["--data", data])
    }

    func succeed(_ words: String...) throws -> String {
      let (exit, output) = try run(words)
      #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
      return output
    }
  }

  @Test func everyVerbNeedsOnlyTheDirectory() throws {
    let session = try Session()
    let file = session.directory.file("backend.json")
    _ = try session.succeed("keys", "create", "backend", "--output", file)
    #expect(try session.directory.text("backend.json").contains("https://db.example.com/token\""))
    #expect(try session.succeed("keys", "list").hasPrefix("backend  "))
    _ = try session.succeed("set", "users/ann", #"{"n": 1}"#)
    _ = try session.succeed("update", "users/ann", "n=2")
    #expect(try session.succeed("get", "users/ann").hasSuffix("{\"n\": 2}\n"))
    #expect(try session.succeed("query", "users", "--json").contains("users/ann"))
    #expect(try session.succeed("watch", "users", "--once") == "+ users/ann  {\"n\": 2}\n")
    #expect(try session.succeed("listeners") == "no listeners\n")
    #expect(try session.succeed("indexes", "list").hasPrefix("no indexes"))
    #expect(try session.succeed("stats").contains("shop/(default)"))
    _ = try session.succeed("accounts", "create", "--email", "ann@example.com")
    #expect(try session.succeed("accounts", "list").contains("ann@example.com"))
    let note = try session.directory.write("note.txt", String(repeating: "0123456789", count: 100_000))
    _ = try session.succeed("files", "cp", note, "gs:///note.txt", "--make-bucket")
    _ = try session.succeed("files", "cp", "gs:///note.txt", session.directory.file("back.txt"))
    #expect(try session.directory.text("back.txt").utf8.count == 1_000_000)
    _ = try session.succeed("files", "rm", "note.txt")
    let tree = try session.directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try session.succeed("import", tree) == "imported 1 document\n")
    #expect(try session.succeed("get", "notes/a").hasSuffix("{\"n\": 1}\n"))
    #expect(try session.succeed("export", "notes", "--project", "shop").contains("\"n\": 1"))
    _ = try session.succeed("delete", "notes/a")
    _ = try session.succeed("keys", "revoke", "backend")
    #expect(try session.succeed("keys", "list") == "no keys\n")
    // With a token, the caller is a user, and rules apply.
    let token = String(try session.succeed("token", "ann").dropLast())
    #expect(try session.succeed("get", "users/ann", "--token", token).contains("\"n\": 2"))
    let denied = try session.run(["get", "users/bob", "--token", token])
    #expect(denied.exit == .code(1) && denied.output.contains("403 PERMISSION_DENIED"), "\(denied.output)")
    let forged = try session.run(["get", "users/ann", "--token", "owner"])
    #expect(forged.exit == .code(1) && forged.output.contains("401"), "\(forged.output)")
    let other = try session.run(["keys", "list", "--project", "other"])
    #expect(other.exit == .code(1) && other.output.contains("name its own with --project shop"), "\(other.output)")
  }

  @Test func aKeyNeedsAKnownURL() throws {
    let session = try Session([])
    let unknown = try session.run(["keys", "create", "backend", "--output", "-"])
    #expect(unknown.exit == .code(64), "\(unknown.output)")
    #expect(unknown.output.contains("such as --url https://db.example.com, or set \"public-url\""), "\(unknown.output)")
    #expect(try session.succeed("keys", "list") == "no keys\n")
    let wrong = try session.run(["keys", "create", "backend", "--output", "-", "--url", "ftp://x"])
    #expect(wrong.exit == .code(64) && wrong.output.contains("is not the URL of a server"), "\(wrong.output)")
    let made = try session.succeed("keys", "create", "backend", "--output", "-", "--url", "https://db.example.com/")
    #expect(made.contains("https://db.example.com/token\""))
  }

  @Test func proxiesAndBrowsersAreRefused() throws {
    let session = try Session()
    let client = TestHTTPClient(unixSocket: session.socket)
    let target = "/hearth/v1/keys"
    #expect(try client.send("GET", target).status == 200)
    for (name, value) in [
      ("Host", "db.example.com"), ("Host", "localhost:8080"), ("Host", ""), ("X-Forwarded-For", "127.0.0.1"),
      ("x-forwarded-proto", "https"), ("Forwarded", "for=127.0.0.1"), ("Via", "1.1 proxy"), ("X-Real-IP", "127.0.0.1"),
      ("Origin", "http://localhost"), ("Origin", "null"),
    ] {
      for method in ["GET", "POST", "OPTIONS"] {
        let response = try client.send(method, target, headers: [(name, value)])
        #expect(
          response.status == 403 || name == "Host" && value.isEmpty && response.status == 400, "\(name): \(value)")
        #expect(!response.text.contains("keys\":"), "\(name): \(value)")
      }
      // An upload, whose body the server reads piece by piece.
      let upload = try client.send(
        "POST", "/upload/storage/v1/b/shop.appspot.com/o?uploadType=media&name=x", headers: [(name, value)], body: [1])
      #expect(upload.status == 403 || upload.status == 400, "\(name): \(value): \(upload.status)")
    }
    #expect(try client.send("GET", target).status == 200)
  }

  @Test(.needs(.tool(.curl))) func noHeaderOfTheNetworkReachesTheSocket() throws {
    let session = try Session()
    for fields in [
      ["Host: localhost"], ["Host: unix"], ["X-Forwarded-For: unix"], ["Forwarded: for=unix;host=localhost"],
    ] {
      let found = try Tool.curl.run(
        ["-sk", "-o", "/dev/null", "-w", "%{http_code}", session.url + "/hearth/v1/keys"]
          + fields.flatMap { ["-H", $0] })
      #expect(found.output == "403", "\(fields)")
    }
  }

  @Test(.needs(.root), .needs(.tool(.setpriv)), .needs(.tool(.curl)))
  func otherUsersCannotUseTheSocket() throws {
    let session = try Session()
    let asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    func attempt() throws -> String {
      let outcome = try Tool.setpriv.run(
        asNobody + [
          try #require(Tool.curl.path), "-sS", "--unix-socket", session.socket, "http://localhost/hearth/v1/keys",
        ])
      return outcome.output + outcome.errors
    }
    chmod(session.directory.path, 0o755)
    #expect(!(try attempt()).contains("\"keys\""))
    // Even if the permissions are lost, the kernel names the user of the process.
    for path in [session.data, session.data + "/run", session.socket] { chmod(path, 0o777) }
    let loosened = try attempt()
    #expect(!loosened.contains("\"keys\"") && !loosened.contains("Permission denied"), "\(loosened)")
    #expect(
      try Tool.curl.run(["-s", "--unix-socket", session.socket, "http://localhost/hearth/v1/keys"]).output.contains(
        "keys"))
    // The command line does not use such a socket.
    for (path, advice) in [
      (session.data, "chmod go-w "), (session.data + "/run", "chmod go= "), (session.socket, "chmod go= "),
    ] {
      let refused = try session.run(["keys", "list"])
      #expect(refused.exit == .code(1) && refused.output.contains(advice + path), "\(refused.output)")
      chmod(path, path == session.socket ? 0o600 : 0o700)
    }
    #expect(try session.succeed("keys", "list") == "no keys\n")
  }

  @Test func aKilledServerLeavesNothingInTheWay() throws {
    let session = try Session()
    #expect(try session.succeed("keys", "list") == "no keys\n")
    session.process.send(signal: SIGKILL)
    _ = session.process.waitForExit(timeoutSeconds: 30)
    #expect(access(session.socket, F_OK) == 0)
    #expect(try session.succeed("keys", "list") == "no keys\n")
    _ = try session.succeed("set", "users/ann", #"{"n": 1}"#)
    let next = try HearthProcess(arguments: ["--data", session.data])
    #expect(try session.succeed("get", "users/ann").contains("\"n\": 1"))
    next.process.stop()
    #expect(access(session.socket, F_OK) != 0)
  }

  @Test func aServerWithoutASocketIsReachedByItsAddress() throws {
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    mkdir(data, 0o700)
    try directory.write("data/run", "not a folder")
    let server = try HearthProcess(arguments: ["--data", data, "--project", "shop"])
    defer { server.process.stop() }
    #expect(server.process.output.contains("the command line cannot use this server's admin socket"))
    unlink(data + "/run")
    let listed = try HearthBinary.run(["keys", "list", "--data", data])
    #expect(listed.exit == .code(0) && listed.output == "no keys\n", "\(listed.output)")
  }
}
