import Accounts
import Callers
import DatabaseService
import DocumentModel
import HearthServer

extension Benchmark {
  static let tokens = Benchmark(
    name: "tokens",
    summary: "signing and checking tokens in this process",
    meaning: """
      The cost on one thread to identify the owner of a bearer token in production mode. A known token was checked
      before, since clients send the same token with every request. For a new token, the server parses it, checks its
      signature (RSA, 2,048 bits) and claims, and reads the user's state. 1,000 tokens are known at a time.
      """
  ) {
    var table = ResultTable("work", "ns each", "per second", "mark")
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.port = 0
    let server = try Server(configuration)
    defer { server.stop() }
    let accounts = server.accounts

    Run.progress("tokens: making")
    _ = try accounts.signingKeys.current(.idToken)
    var tokens: [[UInt8]] = []
    var watch = Stopwatch()
    for number in 0..<4000 {
      var user = SignedInUser(uid: "user-\(number)", provider: "password", authTimeSeconds: accounts.nowSeconds)
      user.email = "user-\(number)@example.com"
      user.customClaims = MapValue([("role", .string("editor"))])
      tokens.append(Array(try accounts.mintIDToken(for: user).utf8))
    }
    row("sign an ID token", seconds: watch.seconds, of: tokens.count, mark: "")

    Run.progress("tokens: checking")
    watch = Stopwatch()
    for token in tokens { try check(token) }
    row("check a new ID token", seconds: watch.seconds, of: tokens.count, mark: "≥ 20,000/s")

    let known = Array(tokens.prefix(1000))
    for token in known { try check(token) }
    let rounds = 2000
    watch = Stopwatch()
    for _ in 0..<rounds {
      for token in known { try check(token) }
    }
    row("look up a known ID token", seconds: watch.seconds, of: rounds * known.count, mark: "≥ 1,000,000/s")

    let access = Array(accounts.serviceKeys.localAccessToken().utf8)
    watch = Stopwatch()
    for _ in 0..<1_000_000 { try check(access) }
    row("look up a known access token", seconds: watch.seconds, of: 1_000_000, mark: "")
    return table

    func check(_ token: [UInt8]) throws {
      let outcome = token.withUnsafeBytes { bytes in
        Result { () throws(Status) in try server.caller(bearing: bytes) }
      }
      if case .user(nil) = try outcome.get() { throw BenchmarkError("a token identified no user") }
    }

    func row(_ work: String, seconds: Double, of count: Int, mark: String) {
      table.add(work, Format.tenths(seconds / Double(count) * 1e9), Format.count(Double(count) / seconds), mark)
    }
  }
}
