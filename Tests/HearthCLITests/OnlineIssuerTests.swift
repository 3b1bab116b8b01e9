import Foundation
import Testing
import TestSupport

/// `hearth serve --trust-issuer` without a key file: the server fetches the keys.
@Suite(.needs(.hearth)) struct OnlineIssuerTests {
  private let directory: TemporaryDirectory
  private static let keysPath = "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"

  init() throws { directory = try TemporaryDirectory() }

  private func serve(_ issuer: String) throws -> HearthProcess {
    let rules = try directory.write(
      "r.rules", "service cloud.firestore { match /{p=**} { allow get: if request.auth.uid == 'ann'; } }")
    return try HearthProcess(arguments: [
      "--in-memory", "--project", "demo", "--rules", rules, "--trust-issuer", issuer,
    ])
  }

  private func status(_ server: HearthProcess, _ token: String) throws -> Int {
    try TestHTTPClient(port: server.port).send(
      "GET", "/v1/projects/demo/databases/(default)/documents/a/b", headers: [("Authorization", "Bearer \(token)")]
    ).status
  }

  @Test func keysAreFetchedAndOutliveTheirSource() throws {
    let cloud = try directory.makeDataDirectory("cloud")
    let printed = try HearthBinary.run(["token", "ann", "--data", cloud, "--project", "cloud"]).output
    let token = printed.trimmingCharacters(in: .whitespacesAndNewlines)
    let source = try HearthProcess(arguments: ["--data", cloud, "--project", "cloud"])
    let proxy = try CuttingProxy(to: source.port, [])
    // The source is unreachable at first. The server starts without it.
    try proxy.refuse()
    let issuer = "https://securetoken.google.com/cloud"
    let server = try serve("\(issuer)=http://127.0.0.1:\(proxy.port)\(Self.keysPath)")
    defer { server.process.stop() }
    try server.process.waitForOutput("a warning", timeoutSeconds: 30) {
      $0.contains("cannot fetch the keys of \(issuer)")
    }
    #expect(try status(server, token) == 401)
    try proxy.resume()
    #expect(OtherProcess.eventually(secondsMax: 60) { (try? status(server, token)) == 404 })
    #expect(try status(server, token + "A") == 401)
    // A failed fetch keeps the keys.
    try proxy.refuse()
    source.process.stop()
    server.process.send(signal: SIGHUP)
    try server.process.waitForOutput("a second warning", timeoutSeconds: 30) {
      $0.contains("its previous keys stay in use")
    }
    #expect(try status(server, token) == 404)
  }

  @Test(arguments: [
    "x", "http://issuer.example,app", "https://issuer.example", "https://issuer.example,app=http://issuer.example/keys",
    "https://issuer.example,app=ftp://issuer.example/keys",
  ])
  func unsafeIssuersAreRefused(issuer: String) throws {
    let (exit, output) = try HearthBinary.run(["serve", "--in-memory", "--trust-issuer", issuer])
    #expect(exit == .code(64) && output.contains("--trust-issuer"), "\(output)")
  }
}
