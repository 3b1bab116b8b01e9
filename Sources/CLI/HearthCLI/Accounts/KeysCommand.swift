import Accounts
import DocumentModel
import Glibc
import WireFormat

extension Command {
  /// Makes a key for a program that is to be admin.
  static let keysCreate = Command(
    name: "keys create", summary: "Makes a service-account file for a program that is to be admin.", operands: "NAME",
    operandCount: 1...1,
    options: AccountsChoice.options + [
      .value("url", "URL", "where the program finds the server (default: http://127.0.0.1:8080, or the server's own)"),
      .value("output", "FILE", "where to write the file; - prints it (default: NAME.json)"),
    ],
    details: """
      The file is what Google's client libraries take as GOOGLE_APPLICATION_CREDENTIALS. Only its owner can read it, and
      nothing else has the private key: who loses it makes another. Who has it may do everything.
      """,
    examples: [
      ("hearth keys create backend --data ./hearth-data", "writes backend.json"),
      ("hearth keys create backend --url https://db.example.com", "for a server behind a proxy"),
    ],
    run: { arguments in
      let name = arguments.operands[0]
      let output = arguments.value("output") ?? "\(name).json"
      if output != "-", access(output, F_OK) == 0 {
        throw CommandFailure.failed("\(output) exists; name another file with --output")
      }
      let file: [UInt8]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        file = try withExtendedLifetime(directory) {
          try accounts.serviceKeys.create(name: name, url: arguments.value("url") ?? "http://127.0.0.1:8080")
        }
      case .server(let client):
        var body = MapValue([("name", .string(name))])
        body["url"] = arguments.value("url").map(Value.string)
        file = try client.call("POST", "/hearth/v1/keys", body.json) ?? []
      }
      try write(file, to: output)
      return 0
    })

  /// Lists the keys of programs.
  static let keysList = Command(
    name: "keys list", summary: "Lists the keys of programs that are admin.",
    options: AccountsChoice.options + [.flag("json", "print JSON")],
    examples: [("hearth keys list --data ./hearth-data", "")],
    run: { arguments in
      let list: [UInt8]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        list = withExtendedLifetime(directory) { ServiceKeys.list(accounts.serviceKeys.all) }
      case .server(let client): list = try client.call("GET", "/hearth/v1/keys") ?? []
      }
      guard !arguments.has("json") else {
        Terminal.output.write(list + [UInt8(ascii: "\n")])
        return 0
      }
      let lines = try JSONText.read(list) { root in
        try (root.member("keys")?.array ?? []).map { key in
          let created = try Timestamp(seconds: Int64(key.member("createdSeconds")?.integer ?? 0), nanos: 0)
          return "\(key.member("name")?.text ?? "")  \(key.member("keyId")?.text ?? "")  \(created)\n"
        }
      }
      Terminal.output.write(lines.isEmpty ? "no keys\n" : lines.joined())
      return 0
    })

  /// Takes a key out of force.
  static let keysRevoke = Command(
    name: "keys revoke", summary: "Takes a key out of force, at once.", operands: "NAME", operandCount: 1...1,
    options: AccountsChoice.options,
    details: "Access tokens and custom tokens that were got with the key end with it.",
    examples: [("hearth keys revoke backend --data ./hearth-data", "")],
    run: { arguments in
      let name = arguments.operands[0]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        let wasThere = try withExtendedLifetime(directory) { try accounts.serviceKeys.revoke(name) }
        guard wasThere else { throw CommandFailure.failed("there is no key '\(name)'") }
      case .server(let client):
        guard ServiceKeys.isName(name) else { throw CommandFailure.failed("there is no key '\(name)'") }
        _ = try client.call("DELETE", "/hearth/v1/keys/\(name)")
      }
      Terminal.error.write("hearth: \(name) is revoked\n")
      return 0
    })

  /// Makes the next keys that sign ID tokens and session cookies.
  static let keysRotate = Command(
    name: "keys rotate", summary: "Makes the next keys that sign the tokens of users.",
    options: AccountsChoice.options + [
      .flag("immediately", "sign with them at once: for a key that has leaked")
    ],
    details: """
      A server does so by itself every thirty days. New keys sign an hour after they are published, old ones verify
      until their last token is expired. With --immediately, the old keys are withdrawn: their ID tokens and session
      cookies are refused at once, users continue with their refresh tokens. Verifiers elsewhere may take up to an hour
      to learn of it.
      """,
    examples: [("hearth keys rotate --data ./hearth-data", "")],
    run: { arguments in
      let immediately = arguments.has("immediately")
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        try withExtendedLifetime(directory) {
          for purpose in SigningKeys.Purpose.allCases {
            try accounts.signingKeys.rotate(purpose, immediately: immediately)
          }
        }
      case .server(let client):
        let body = MapValue([("immediately", .boolean(immediately))]).json
        _ = try client.call("POST", "/hearth/v1/keys:rotate", body)
      }
      let when = immediately ? "now" : "in an hour"
      Terminal.error.write("hearth: new keys sign \(when)\n")
      return 0
    })

  /// Writes a file that only its owner can read; it must not exist.
  private static func write(_ file: [UInt8], to path: String) throws {
    let text = file + [UInt8(ascii: "\n")]
    guard path != "-" else { return Terminal.output.write(text) }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, text, text.count) == text.count, fsync(descriptor) == 0 else {
      throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))")
    }
    Terminal.error.write("hearth: wrote \(path); who has it is admin, so keep it secret\n")
  }
}
