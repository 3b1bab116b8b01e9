import Accounts
import DocumentModel
import Glibc
import WireFormat

extension Command {
  /// Creates a key for a server program with administrator rights.
  static let keysCreate = Command(
    name: "keys create", summary: "Creates a service-account file for a server program with administrator rights.",
    operands: "NAME", operandCount: 1...1,
    options: AccountsChoice.options + [
      .value("url", "URL", "the server's URL for the program (default: the --public-url of the server)"),
      .value("output", "FILE", "write to this file; - prints it (default: NAME.json)"),
    ],
    details: """
      Google's client libraries read the file if GOOGLE_APPLICATION_CREDENTIALS names it. Only its owner can read it.
      The private key exists only in this file: if you lose it, create a new key and revoke the old one. A program
      with the file has the rights of an administrator.

      The file contains the URL at which the program reaches the server. If a server runs, the verb uses its --public-url,
      the URL of --server, or, if it uses plain HTTP on a loopback address, that address. Otherwise it uses "public-url"
      of hearth.json. If none of them is known, give the URL with --url; on a terminal, the verb asks for it.
      """,
    examples: [
      ("hearth keys create backend --data ./hearth-data", "writes backend.json, while a server uses the directory"),
      (
        "hearth keys create backend --data ./hearth-data --url https://db.example.com",
        "for a program on another machine"
      ),
    ],
    run: { arguments in
      let name = arguments.operands[0]
      let output = arguments.value("output") ?? "\(name).json"
      if output != "-", access(output, F_OK) == 0 {
        throw CommandFailure.failed("\(output) already exists; name another file with --output")
      }
      let file: [UInt8]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        let url = try KeyURL.choose(arguments, known: ConfigurationFile.publicURL())
        file = try withExtendedLifetime(directory) { try accounts.serviceKeys.create(name: name, url: url) }
      case .server(let client):
        var body = MapValue([("name", .string(name))])
        let facts = try client.facts()
        let chosen = arguments.has("data") ? nil : ServerClient.normalized(DatabaseChoice.server(arguments))
        body["url"] = .string(try KeyURL.choose(arguments, known: facts?.publicURL ?? chosen ?? facts?.keyURL))
        file = try client.call("POST", "/hearth/v1/keys", body.json) ?? []
      }
      try write(file, to: output)
      return 0
    })

  /// Lists the keys of programs.
  static let keysList = Command(
    name: "keys list", summary: "Lists the keys of server programs with administrator rights.",
    options: AccountsChoice.options + [.flag("json", "print JSON")],
    examples: [("hearth keys list --data ./hearth-data", "name, ID and creation time of each key")],
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

  /// Revokes the key of a program.
  static let keysRevoke = Command(
    name: "keys revoke", summary: "Revokes the key of a server program.", operands: "NAME", operandCount: 1...1,
    options: AccountsChoice.options,
    details: "Revoking a key immediately invalidates the key and every access token and custom token issued for it.",
    examples: [("hearth keys revoke backend --data ./hearth-data", "the key of backend.json")],
    run: { arguments in
      let name = arguments.operands[0]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        let wasThere = try withExtendedLifetime(directory) { try accounts.serviceKeys.revoke(name) }
        guard wasThere else { throw CommandFailure.failed("key '\(name)' does not exist") }
      case .server(let client):
        guard ServiceKeys.isName(name) else { throw CommandFailure.failed("key '\(name)' does not exist") }
        _ = try client.call("DELETE", "/hearth/v1/keys/\(name)")
      }
      Terminal.error.write("hearth: revoked the key \(name)\n")
      return 0
    })

  /// Creates new keys for signing ID tokens and session cookies.
  static let keysRotate = Command(
    name: "keys rotate", summary: "Rotates the keys with which the server signs tokens (not the keys of programs).",
    options: AccountsChoice.options + [
      .flag("immediately", "use the new keys immediately, if an old key has leaked")
    ],
    details: """
      A server rotates these keys automatically every thirty days. It publishes a new key one hour before it signs
      with it, and accepts an old key until the last token that it signed has expired.

      With --immediately, the server withdraws the old keys: it refuses their ID tokens and session cookies at once.
      Users stay signed in with their refresh tokens. Other verifiers may accept the old keys for up to an hour.
      """,
    examples: [
      ("hearth keys rotate --data ./hearth-data", "a regular rotation"),
      ("hearth keys rotate --data ./hearth-data --immediately", "after a key has leaked"),
    ],
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
      let when = immediately ? "from now on" : "in an hour"
      Terminal.error.write("hearth: created new keys; they sign \(when)\n")
      return 0
    })

  /// Creates a file that only its owner can read.
  private static func write(_ file: [UInt8], to path: String) throws {
    let text = file + [UInt8(ascii: "\n")]
    guard path != "-" else { return Terminal.output.write(text) }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, text, text.count) == text.count, fsync(descriptor) == 0 else {
      throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))")
    }
    Terminal.error.write("hearth: wrote \(path); it gives administrator rights, so keep it secret\n")
  }
}
