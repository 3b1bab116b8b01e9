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
      .value("output", "FILE", "write to this file, readable only by its owner (default: standard output)"),
      .value("format", "NAME", "hearth, or firebase for `firebase auth:import` (default: hearth)")
        .with(choices: ["hearth", "firebase"]),
    ],
    details: """
      Each hash contains its algorithm and parameters, so `hearth accounts import` needs no options for such a file.

      With --format firebase, the file contains only what `firebase auth:import` accepts. Passwords remain if their hash
      came from Firebase and was not replaced since, or is a bcrypt hash. Other accounts are exported without their
      password. The verb reports their number, and the options for `firebase auth:import`.
      """,
    examples: [
      ("hearth accounts export --output accounts.json", "writes a file"),
      ("hearth accounts export --format firebase --output users.json", "for firebase auth:import users.json"),
    ],
    run: { arguments in
      let format = arguments.value("format") ?? "hearth"
      guard ["hearth", "firebase"].contains(format) else {
        throw arguments.refusal(of: "format", format, "must be hearth or firebase")
      }
      var firebase = format == "firebase" ? FirebaseAccounts() : nil
      let output = try OutputFile(arguments.value("output"))
      try output.write(Array("{\"users\": [".utf8))
      var isFirst = true
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      try client.forEachPage { page in
        for user in page {
          var json = JSONWriter(.compact)
          json.append(firebase?.convert(user) ?? user)
          try output.write(Array(isFirst ? "\n".utf8 : ",\n".utf8) + json.bytes)
          isFirst = false
        }
        return true
      }
      try output.write(Array("\n]}\n".utf8))
      try output.finish()
      if let firebase { Terminal.error.write(firebase.report) }
      return 0
    })

  /// Imports accounts.
  static let accountsImport = Command(
    name: "accounts import", summary: "Imports accounts with their password hashes from JSON.", operands: "[FILE]",
    operandCount: 0...1,
    options: AccountsClient.options + AccountsSource.options + [
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

      With --from, the verb copies the accounts of a running project, with the parameters of its password hashes and with
      links to all providers. For a project of Google, the caller needs the role Firebase Authentication Admin. To
      continue after an interruption, run the same command again. Accounts of tenants are not copied.
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
      let client: AccountsClient
      let transfer: AccountsImport
      if arguments.has("from") {
        guard arguments.operands.isEmpty else { throw CommandFailure.usage("give either FILE or --from, not both") }
        client = try AccountsClient(arguments)
        defer { client.finish() }
        let source = try AccountsSource(arguments, project: client.project)
        let parameters = arguments.has("hash-algo") ? [] : try source.hashParameters()
        transfer = AccountsImport(client, arguments, parameters, name: arguments.value("from") ?? "")
        var progress = Progress()
        try source.forEachPage { users in
          try transfer.send(users)
          progress.show(transfer.count, "accounts imported")
        }
        progress.clear()
        let tenants = source.tenants()
        if tenants > 0 { Terminal.error.write("hearth: skipped the accounts of \(CountText.of(tenants, "tenant"))\n") }
      } else {
        let (path, users) = try file(arguments)
        client = try AccountsClient(arguments)
        defer { client.finish() }
        transfer = AccountsImport(client, arguments, name: path)
        try transfer.sendAll(users.map { ExportedAccounts.withPlainPassword($0).user })
      }
      let count = CountText.of(transfer.count, "account")
      Terminal.error.write("hearth: imported \(transfer.count - transfer.failures) of \(count)\n")
      return transfer.failures == 0 ? 0 : ExitCode.data
    })

  /// Returns the name and the users of the file that the command line names.
  private static func file(_ arguments: Arguments) throws -> (String, [JSONTree]) {
    guard let path = arguments.operands.first else {
      throw CommandFailure.usage("an operand is missing: FILE, or the option --from URL")
    }
    let file: JSONTree
    do { file = try JSONTree(parsing: try bytes(of: path)) } catch let error as WireError {
      throw CommandFailure.data("\(path) is not valid JSON: \(error)")
    }
    guard case .array(let users)? = file["users"]?.kind else {
      throw CommandFailure.data("\(path) has no array 'users'; import a file that `firebase auth:export` wrote")
    }
    return (path, users)
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

/// An import of accounts, in batches.
final class AccountsImport {
  private let client: AccountsClient
  /// The options about the password hashes; `nil` if the accounts need none.
  private let arguments: Arguments?
  /// The parameters of the password hashes, as the source names them.
  private let parameters: [JSONTree.Member]
  /// The file or the server, for messages.
  private let name: String
  private let retries = Retries()
  /// The number of accounts that were sent.
  private(set) var count = 0
  /// The number of accounts that were rejected.
  private(set) var failures = 0

  /// Prepares an import.
  init(_ client: AccountsClient, _ arguments: Arguments?, _ parameters: [JSONTree.Member] = [], name: String) {
    self.client = client
    self.arguments = arguments
    self.parameters = parameters
    self.name = name
  }

  /// The maximum number of users in a request.
  private static let batchSize = 1000
  /// The size above which a batch is sent, in bytes. The server accepts bodies of up to 24 MiB.
  private static let batchBytes = 4 << 20

  /// Sends accounts in batches, and reports each account that is rejected. `progress` receives the number of accounts
  /// that were sent.
  /// - Throws: ``CommandFailure`` if a request fails.
  func sendAll(_ users: [JSONTree], progress: (Int) -> Void = { _ in }) throws {
    var batch: [JSONTree] = []
    var bytes = 0
    func sendBatch() throws {
      try send(batch)
      progress(count)
      (batch, bytes) = ([], 0)
    }
    for user in users {
      batch.append(user)
      bytes += user.textBytes
      if batch.count == Self.batchSize || bytes >= Self.batchBytes { try sendBatch() }
    }
    if !batch.isEmpty { try sendBatch() }
  }

  /// Sends a batch, and reports each account that is rejected.
  /// - Throws: ``CommandFailure`` if the request fails.
  func send(_ users: [JSONTree]) throws {
    let answer = try retries.run { _ in
      try client.call("batchCreate") { json in
        appendHashParameters(to: &json)
        json.key("users")
        json.append(JSONTree(.array(users)))
      }
    }
    for error in answer["error"]?.elements ?? [] {
      failures += 1
      let index = count + Int(error["index"]?.int64 ?? 0)
      let problem = "\(name): user \(index + 1): \(error["message"]?.text ?? "")"
      Terminal.error.write("hearth: \(TerminalText.line(problem))\n")
    }
    count += users.count
  }

  private func appendHashParameters(to json: inout JSONWriter) {
    for parameter in parameters {
      Array(parameter.name.utf8).withUnsafeBytes { json.key($0) }
      json.append(parameter.value)
    }
    guard let arguments else { return }
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
}

extension JSONTree {
  /// The size of all texts and names in the value, in bytes.
  fileprivate var textBytes: Int {
    switch kind {
    case .null, .boolean: 0
    case .number(let text), .string(let text): text.utf8.count
    case .array(let elements): elements.reduce(0) { $0 + $1.textBytes }
    case .object(let members): members.reduce(0) { $0 + $1.name.utf8.count + $1.value.textBytes }
    }
  }
}
