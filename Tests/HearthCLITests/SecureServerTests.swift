import Foundation
import Testing
import TestSupport

/// The verbs of the command line against a server with TLS.
@Suite(.needs(.hearth), .needs(.tool(.openssl)))
struct SecureServerTests {
  private static let project = ["--project", "demo"]

  /// A server in emulator mode whose certificate is valid for 127.0.0.1, and not for localhost.
  private final class Session {
    let directory: TemporaryDirectory
    let authority: TestAuthority
    let process: ServerProcess
    let url: String

    init(isExpired: Bool = false) throws {
      directory = try TemporaryDirectory()
      authority = try TestAuthority()
      let certificate = try authority.issue(for: "IP:127.0.0.1", isExpired: isExpired)
      process = try HearthBinary.start(
        [
          "serve", "--emulator", "--port", "0", "--data", directory.file("data"), "--tls-cert", certificate.file,
          "--tls-key", certificate.keyFile,
        ] + project)
      url = try process.waitForLine(prefix: "hearth: listening on ", timeoutSeconds: 30)
    }

    deinit { process.stop() }

    func run(_ words: [String]) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(words + ["--server", url, "--cacert", authority.file])
    }

    func succeed(_ words: [String]) throws -> String {
      let (exit, output) = try run(words)
      #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
      return output
    }
  }

  @Test func verbsForDocumentsUseTLS() throws {
    let session = try Session()
    let (directory, project) = (session.directory, Self.project)
    _ = try session.succeed(["set", "users/ann", #"{"n": 1}"#] + project)
    _ = try session.succeed(["update", "users/ann", "n=2"] + project)
    #expect(try session.succeed(["get", "users/ann"] + project).hasSuffix("{\"n\": 2}\n"))
    #expect(try session.succeed(["query", "users", "--json"] + project).contains("users/ann"))
    #expect(try session.succeed(["watch", "users", "--once"] + project) == "+ users/ann  {\"n\": 2}\n")
    #expect(try session.succeed(["listeners"]) == "no listeners\n")
    #expect(try session.succeed(["stats"]).contains("demo/(default)"))
    #expect(try session.succeed(["indexes", "list"] + project).hasPrefix("no indexes"))
    _ = try session.succeed(["export", "--output", directory.file("all.json")] + project)
    #expect(try session.succeed(["import", directory.file("all.json")] + project).hasPrefix("imported"))
    let rules = try directory.write(
      "a.rules",
      """
      rules_version = '2';
      service cloud.firestore { match /databases/{d}/documents { match /{rest=**} { allow read; } } }
      """)
    #expect(
      try session.succeed(["rules", "explain", "--rules", rules, "get", "users/ann"] + project).contains("allow"))
    _ = try session.succeed(["delete", "users/ann"] + project)
  }

  @Test func verbsForAccountsKeysAndFilesUseTLS() throws {
    let session = try Session()
    let (directory, project) = (session.directory, Self.project)
    _ = try session.succeed(["accounts", "create", "--email", "ann@example.com"] + project)
    #expect(try session.succeed(["accounts", "list"] + project).contains("ann@example.com"))
    #expect(try session.succeed(["keys", "list"] + project) == "no keys\n")
    #expect(try session.succeed(["token", "ann"] + project).contains("."))
    let file = try directory.write("note.txt", String(repeating: "0123456789", count: 100_000))
    _ = try session.succeed(["files", "cp", file, "gs:///note.txt", "--make-bucket"] + project)
    _ = try session.succeed(["files", "cp", "gs:///note.txt", directory.file("back.txt")] + project)
    #expect(try directory.text("back.txt").utf8.count == 1_000_000)
    #expect(try session.succeed(["files", "ls"] + project).contains("note.txt"))
    _ = try session.succeed(["files", "rm", "note.txt"] + project)
    // The directory names the server that uses it.
    let keys = ["keys", "list", "--data", directory.file("data"), "--cacert", session.authority.file]
    #expect(try HearthBinary.run(keys + project).output == "no keys\n")
  }

  @Test func theEnvironmentNamesTheFileOfAuthorities() throws {
    let session = try Session()
    let path = try #require(HearthBinary.path)
    let process = try ServerProcess(
      executable: "/usr/bin/env",
      arguments: ["HEARTH_CACERT=\(session.authority.file)", "HEARTH_SERVER=\(session.url)", path, "get"] + Self.project
    )
    #expect(process.waitForExit(timeoutSeconds: 30) == .code(0), "\(process.output)")
  }

  @Test(arguments: [
    ([], 1, "no trusted authority issued its certificate", "--cacert"),
    (["--cacert", "/nowhere/ca.pem"], 65, "/nowhere/ca.pem cannot be used as a file of trusted certificates", ""),
  ])
  func anUntrustedServerIsRefused(options: [String], code: Int, problem: String, advice: String) throws {
    let session = try Session()
    let run = try HearthBinary.run(["get", "users", "--server", session.url] + options + Self.project)
    #expect(run.exit == .code(Int32(code)) && run.output.contains(problem), "\(run.output)")
    #expect(run.output.contains("\(session.url) is not trusted") || code == 65, "\(run.output)")
    #expect(advice.isEmpty || run.output.contains(advice), "\(run.output)")
  }

  @Test(arguments: [
    (false, "https://localhost", "its certificate is not for 'localhost'; name the server as its certificate does"),
    (true, "https://127.0.0.1", "its certificate has expired; renew it"),
    (false, "http://127.0.0.1", "closed the connection before the response was complete"),
  ])
  func anUnsuitableAddressIsExplained(isExpired: Bool, url: String, problem: String) throws {
    let session = try Session(isExpired: isExpired)
    let port = try #require(session.url.split(separator: ":").last)
    let run = try HearthBinary.run(
      ["get", "users", "--server", "\(url):\(port)", "--cacert", session.authority.file] + Self.project)
    #expect(run.exit == .code(1) && run.output.contains(problem), "\(run.output)")
  }

  @Test func aServerWithoutTLSIsExplained() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let run = try HearthBinary.run(["get", "users", "--server", "https://127.0.0.1:\(server.port)"] + Self.project)
    #expect(run.exit == .code(1))
    #expect(run.output.contains("does not use TLS; write its URL with http://"), "\(run.output)")
  }

  // MARK: libcurl

  /// libcurl would add 20 libraries to the server's process.
  @Test func aServerDoesNotLoadLibcurl() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let file = try #require(FileHandle(forReadingAtPath: "/proc/\(server.process.processID)/maps"))
    let maps = String(decoding: file.readDataToEndOfFile(), as: UTF8.self)
    #expect(maps.contains("libcrypto"), "the process has no libraries")
    #expect(!maps.contains("libcurl"))
  }

  @Test func aMissingLibcurlIsNamed() throws {
    let directory = try TemporaryDirectory()
    // A file that is not a library ends the search.
    _ = try directory.write("libcurl.so.4", "no library")
    let path = try #require(HearthBinary.path)
    let process = try ServerProcess(
      executable: "/usr/bin/env", arguments: ["LD_LIBRARY_PATH=\(directory.path)", path, "get", "users"] + Self.project)
    #expect(process.waitForExit(timeoutSeconds: 30) == .code(1))
    #expect(process.output.contains("cannot load libcurl"), "\(process.output)")
    #expect(process.output.contains("the Debian package libcurl4"), "\(process.output)")
  }
}
