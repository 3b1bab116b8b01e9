import Foundation
import Testing
import TestSupport

/// The configurations of docs/proxies.md, run with the programs that they are for.
@Suite(.needs(.hearth), .needs(.tool(.openssl)), .needs(.tool(.curl)))
struct ProxyTests {
  /// A production server behind a proxy with TLS.
  private final class Session {
    let directory: TemporaryDirectory
    let server: ServerProcess
    /// The address of the proxy.
    let url: String
    /// The file with the authority of the proxy's certificate.
    let authorities: String
    private let proxy: ServerProcess
    private let port: ReservedLoopbackPort

    /// Starts a server, and the proxy with the configuration that the page has for it.
    init(_ tool: Tool) throws {
      directory = try TemporaryDirectory()
      port = try ReservedLoopbackPort()
      url = "https://localhost:\(port.number)"
      let rules = try directory.write(
        "shop.rules",
        """
        rules_version = '2';
        service cloud.firestore { match /databases/{d}/documents { match /{c}/{id} { allow read; } } }
        """)
      let options = ["--data", try directory.makeDataDirectory("data"), "--project", "shop"]
      let created = try HearthBinary.run(
        ["keys", "create", "backend", "--url", url, "--output", directory.file("key.json")] + options)
      #expect(created.exit == .code(0), "\(created.output)")
      let hearth = try HearthProcess(arguments: ["--rules", rules] + options)
      server = hearth.process
      let block = try Self.block(for: tool).replacingOccurrences(of: "127.0.0.1:8080", with: "127.0.0.1:\(hearth.port)")
      (proxy, authorities) =
        tool.name == "caddy"
        ? try Self.caddy(tool, block, port.number, directory) : try Self.nginx(tool, block, port.number, directory)
      try waitUntilReady()
    }

    deinit {
      proxy.stop()
      server.stop()
    }

    /// Returns the block of the page after the mark `<!-- run NAME -->`.
    private static func block(for tool: Tool) throws -> String {
      let page = try String(contentsOfFile: "\(GuidePage.root)/docs/proxies.md", encoding: .utf8)
      let marked = try #require(page.components(separatedBy: "<!-- run \(tool.name) -->\n```").dropFirst().first)
      let lines = try #require(marked.components(separatedBy: "\n```").first).components(separatedBy: "\n")
      return lines.dropFirst().joined(separator: "\n")
    }

    /// Adds what the other files of an installed nginx contain, and puts the test's names and files in place.
    private static func nginx(
      _ tool: Tool, _ block: String, _ port: UInt16, _ directory: TemporaryDirectory
    ) throws -> (ServerProcess, String) {
      let authority = try TestAuthority()
      let certificate = try authority.issue(for: "DNS:localhost")
      let folder = directory.path
      for (from, to) in [
        (authority.file, "ca.pem"), (certificate.file, "chain.pem"), (certificate.keyFile, "key.pem"),
      ] { try FileManager.default.copyItem(atPath: from, toPath: directory.file(to)) }
      let site = block.replacingOccurrences(of: "listen 443", with: "listen 127.0.0.1:\(port)")
        .replacingOccurrences(of: "/etc/letsencrypt/live/db.example.com/fullchain.pem", with: "\(folder)/chain.pem")
        .replacingOccurrences(of: "/etc/letsencrypt/live/db.example.com/privkey.pem", with: "\(folder)/key.pem")
        .replacingOccurrences(of: "db.example.com", with: "localhost")
      let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
      let user = geteuid() == 0 ? "user root;" : ""
      let file = try directory.write(
        "nginx.conf",
        """
        daemon off; \(user) pid \(folder)/pid; error_log stderr; events {}
        http { access_log off; \(paths.joined(separator: " "))
        \(site)
        }
        """)
      let process = try ServerProcess(executable: try #require(tool.path), arguments: ["-e", "stderr", "-c", file])
      return (process, directory.file("ca.pem"))
    }

    /// Lets Caddy issue the certificate itself, as it does for names that are not public.
    private static func caddy(
      _ tool: Tool, _ block: String, _ port: UInt16, _ directory: TemporaryDirectory
    ) throws -> (ServerProcess, String) {
      let file = try directory.write(
        "Caddyfile",
        """
        {
          admin off
          local_certs
          skip_install_trust
          auto_https disable_redirects
        }
        \(block.replacingOccurrences(of: "db.example.com", with: "localhost:\(port)"))
        """)
      let process = try ServerProcess(
        executable: "/usr/bin/env",
        arguments: [
          "XDG_DATA_HOME=\(directory.path)", "XDG_CONFIG_HOME=\(directory.path)", try #require(tool.path), "run",
          "--config", file, "--adapter", "caddyfile",
        ])
      return (process, directory.file("caddy/pki/authorities/local/root.crt"))
    }

    /// Waits until a request reaches the server through the proxy.
    private func waitUntilReady() throws {
      var status = ""
      for _ in 0..<50 {
        let result = try Tool.curl.run([
          "-s", "--retry", "10", "--retry-connrefused", "--retry-delay", "1", "--cacert", authorities, "\(url)/healthz",
        ])
        status = result.output
        if status.hasPrefix("ok") { return }
        guard proxy.waitForExit(timeoutSeconds: 0.2) == nil else { break }
      }
      throw ServerProcessError(description: "the proxy is not ready: \(status)\n\(proxy.output)")
    }
  }

  @Test(.needs(.tool(.nginx)), .needs(.pythonClients), .timeLimit(.minutes(5)))
  func everyProtocolWorksThroughNginx() throws { try everyProtocolWorks(.nginx) }

  @Test(.needs(.tool(.caddy)), .needs(.pythonClients), .timeLimit(.minutes(5)))
  func everyProtocolWorksThroughCaddy() throws { try everyProtocolWorks(.caddy) }

  private func everyProtocolWorks(_ tool: Tool) throws {
    let session = try Session(tool)
    let client = try ServerProcess(
      executable: try #require(PythonClients.interpreter),
      arguments: [
        "\(GuidePage.root)/.ci/clients/proxy.py", session.url, session.authorities, session.directory.file("key.json"),
      ])
    #expect(client.waitForExit(timeoutSeconds: 240) == .code(0), "\(client.output)\n\(session.server.output)")
    #expect(client.output.split(separator: "\n").count { $0.hasPrefix("ok ") } == 6, "\(client.output)")
  }

  @Test(.needs(.tool(.nginx))) func nginxForwardsTheAddressOfTheClient() throws { try forwardsTheAddress(.nginx) }

  @Test(.needs(.tool(.caddy))) func caddyForwardsTheAddressOfTheClient() throws { try forwardsTheAddress(.caddy) }

  /// The log names the address from which the client connects. It ignores the header that the client sends.
  private func forwardsTheAddress(_ tool: Tool) throws {
    let session = try Session(tool)
    let signUp = try Tool.curl.run([
      "-s", "--interface", "127.0.0.2", "--cacert", session.authorities, "-H", "X-Forwarded-For: 192.0.2.66", "-H",
      "Content-Type: application/json", "-d", "{}", "\(session.url)/v1/accounts:signUp?key=any",
    ])
    #expect(signUp.output.contains("idToken"), "\(signUp.output) \(signUp.errors)")
    try session.server.waitForOutput("the sign-up", timeoutSeconds: 10) { $0.contains("created as a guest") }
    #expect(session.server.output.contains("by user from 127.0.0.2\n"), "\(session.server.output)")
    #expect(!session.server.output.contains("192.0.2.66"))
  }

  /// The hook of docs/operating.md hands a renewed certificate to the user of the server, which takes it up.
  @Test func theRenewalHookInstallsACertificate() throws {
    let page = try String(contentsOfFile: "\(GuidePage.root)/docs/operating.md", encoding: .utf8)
    let block = try #require(page.components(separatedBy: "renewal-hooks/deploy/hearth <<'END'\n").dropFirst().first)
    let script = try #require(block.components(separatedBy: "\nEND\n").first)
    let directory = try TemporaryDirectory()
    let (first, second) = (try TestAuthority(), try TestAuthority())
    let path = directory.path
    // The hook ignores the certificates of other names.
    for (authority, name) in [
      (first, "first/shop.example.com"), (second, "second/shop.example.com"), (second, "second/other.example.com"),
    ] {
      let certificate = try authority.issue(for: "DNS:localhost")
      try FileManager.default.createDirectory(atPath: directory.file(name), withIntermediateDirectories: true)
      try FileManager.default.copyItem(atPath: certificate.file, toPath: directory.file("\(name)/fullchain.pem"))
      try FileManager.default.copyItem(atPath: certificate.keyFile, toPath: directory.file("\(name)/privkey.pem"))
    }
    func hook(_ lineage: String, reload: String) throws {
      let file = try directory.write(
        "hook",
        script.replacingOccurrences(of: "/etc/hearth", with: path)
          .replacingOccurrences(of: "-o hearth -g hearth", with: "-o \(geteuid()) -g \(getegid())")
          .replacingOccurrences(of: "systemctl try-reload-or-restart hearth", with: reload))
      let run = try ServerProcess(
        executable: "/usr/bin/env", arguments: ["RENEWED_LINEAGE=\(path)/\(lineage)", "/bin/sh", file])
      #expect(run.waitForExit(timeoutSeconds: 30) == .code(0), "\(run.output)")
    }
    try hook("second/other.example.com", reload: "false")
    #expect(!FileManager.default.fileExists(atPath: directory.file("tls-cert.pem")))
    try hook("first/shop.example.com", reload: "true")
    let server = try HearthProcess(
      arguments: [
        "--data", directory.file("data"), "--project", "shop", "--tls-cert", directory.file("tls-cert.pem"),
        "--tls-key", directory.file("tls-key.pem"),
      ], usesTLS: true)
    defer { server.process.stop() }
    func isTrusted(_ authority: TestAuthority) throws -> Bool {
      let url = "https://localhost:\(server.port)/healthz"
      return try Tool.curl.run(["-s", "--cacert", authority.file, url]).output.hasPrefix("ok")
    }
    #expect(try isTrusted(first))
    try hook("second/shop.example.com", reload: "kill -HUP \(server.process.processID)")
    let isRenewed = try OtherProcess.eventually { try isTrusted(second) }
    #expect(isRenewed, "\(server.process.output)")
    #expect(try !isTrusted(first))
  }
}

/// A port of 127.0.0.1 that no other test gets, although nothing listens on it yet.
private final class ReservedLoopbackPort {
  let number: UInt16
  private let descriptor: Int32

  init() throws { (descriptor, number) = try LoopbackAddress.bind() }

  deinit { close(descriptor) }
}
