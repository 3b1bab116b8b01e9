import Accounts
import Glibc
import WireFormat

/// The verbs that move accounts as a file in the form of `firebase auth:export`:
/// `{"users": [{"localId", "email", "passwordHash", …}]}`.
extension Command {
  /// Exports all accounts.
  static let accountsExport = Command(
    name: "accounts export", summary: "Exports all accounts with their password hashes, as JSON.",
    options: AccountsClient.options + [
      .value("output", "FILE", "write to this file, readable only by its owner (default: standard output)")
    ],
    details: """
      Each hash contains its algorithm and parameters, so `hearth accounts import` needs no options for such a file.
      """,
    examples: [("hearth accounts export --output accounts.json", "writes a file")],
    run: { arguments in
      let output = try OutputFile(arguments.value("output"))
      try output.write(Array("{\"users\": [".utf8))
      var isFirst = true
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      try client.forEachPage { page in
        for user in page {
          var json = JSONWriter(.compact)
          json.append(user)
          try output.write(Array(isFirst ? "\n".utf8 : ",\n".utf8) + json.bytes)
          isFirst = false
        }
        return true
      }
      try output.write(Array("\n]}\n".utf8))
      try output.finish()
      return 0
    })

  /// Imports accounts.
  static let accountsImport = Command(
    name: "accounts import", summary: "Imports accounts with their password hashes from JSON.", operands: "FILE",
    operandCount: 1...1,
    options: AccountsClient.options + [
      .value("hash-algo", "NAME", "the hash algorithm: SCRYPT (Firebase's), STANDARD_SCRYPT, BCRYPT, ARGON2, …"),
      .value("hash-key", "BASE64", "the signer key, for SCRYPT and HMAC_…"),
      .value("salt-separator", "BASE64", "the salt separator, for SCRYPT"),
      .value("rounds", "N", "the rounds, for SCRYPT, PBKDF…, MD5 and SHA…"),
      .value("mem-cost", "N", "the memory cost, for SCRYPT and STANDARD_SCRYPT"),
      .value("block-size", "N", "the block size, for STANDARD_SCRYPT"),
      .value("parallelization", "N", "the parallelization, for STANDARD_SCRYPT"),
      .value("hash-input-order", "ORDER", "SALT_FIRST or PASSWORD_FIRST, for MD5, SHA… and HMAC_…"),
    ],
    details: """
      The file is an output of `firebase auth:export` or `hearth accounts export`. An account replaces an existing one
      with the same ID. The server hashes a password again, with Argon2id, at its first sign-in.
      """,
    examples: [
      ("hearth accounts import accounts.json", "a file that Hearth exported"),
      (
        "hearth accounts import users.json --hash-algo SCRYPT --hash-key KEY --salt-separator Bw== --rounds 8 "
          + "--mem-cost 14",
        "a file that Firebase exported; its console shows the parameters"
      ),
    ],
    run: { arguments in
      let path = arguments.operands[0]
      let file: JSONTree
      do { file = try JSONTree(parsing: try bytes(of: path)) } catch let error as WireError {
        throw CommandFailure.data("\(path) is not valid JSON: \(error)")
      }
      guard case .array(let users)? = file["users"]?.kind else {
        throw CommandFailure.data("\(path) has no array 'users'; import a file that `firebase auth:export` wrote")
      }
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      let failures = try AccountsImport.send(
        users, from: path, to: client, head: { append(hashParameters: arguments, to: &$0) })
      let count = "\(users.count) \(users.count == 1 ? "account" : "accounts")"
      Terminal.error.write("hearth: imported \(users.count - failures) of \(count)\n")
      return failures == 0 ? 0 : ExitCode.data
    })

  private static func append(hashParameters arguments: Arguments, to json: inout JSONWriter) {
    json.add("hashAlgorithm", arguments.value("hash-algo"))
    json.add("signerKey", arguments.value("hash-key"))
    json.add("saltSeparator", arguments.value("salt-separator"))
    json.add("rounds", arguments.value("rounds"))
    json.add("memoryCost", arguments.value("mem-cost"))
    json.add("blockSize", arguments.value("block-size"))
    json.add("parallelization", arguments.value("parallelization"))
    json.add(
      "passwordHashOrder",
      arguments.value("hash-input-order").map { $0 == "SALT_FIRST" ? "SALT_AND_PASSWORD" : "PASSWORD_AND_SALT" })
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CommandFailure.data("\(path) cannot be read: \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { return bytes }
      if count > 0 {
        bytes += buffer[..<count]
      } else if errno != EINTR {
        throw CommandFailure.data("\(path) cannot be read: \(String(cString: strerror(errno)))")
      }
    }
  }
}

/// The import of accounts in requests of limited size.
enum AccountsImport {
  /// The maximum number of users in a request.
  private static let batchSize = 1000

  /// Sends records in the form of `firebase auth:export`, reports those that the server rejects, and returns their
  /// number. `head` appends the hash parameters.
  /// - Throws: ``CommandFailure`` if a request fails.
  static func send(
    _ users: [JSONTree], from path: String, to client: AccountsClient, progress: (Int) -> Void = { _ in },
    head: (inout JSONWriter) -> Void = { _ in }
  ) throws -> Int {
    var failures = 0
    for start in stride(from: 0, to: users.count, by: batchSize) {
      let batch = Array(users[start..<min(users.count, start + batchSize)])
      let answer = try client.call("batchCreate") { json in
        head(&json)
        json.key("users")
        json.append(JSONTree(.array(batch)))
      }
      for error in answer["error"]?.elements ?? [] {
        failures += 1
        let index = start + Int(error["index"]?.int64 ?? 0)
        let problem = "\(path): user \(index + 1): \(error["message"]?.text ?? "")"
        Terminal.error.write("hearth: \(TerminalText.line(problem))\n")
      }
      progress(start + batch.count)
    }
    return failures
  }
}
