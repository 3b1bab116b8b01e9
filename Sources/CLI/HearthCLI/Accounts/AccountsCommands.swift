import Accounts
import DocumentModel
import WireFormat

/// The verbs for the accounts of users. ``Command/accountsExport`` and ``Command/accountsImport`` move accounts.
extension Command {
  /// Lists the accounts of a project.
  static let accountsList = Command(
    name: "accounts list", summary: "Lists the accounts of a project.",
    options: AccountsClient.options + [
      .value("limit", "N", "the maximum number of accounts (default: 100)"),
      .flag("json", "print JSON with all fields except the password hashes, one account per line"),
    ],
    details: """
      Each line shows the ID, the email address or phone number, the sign-in methods, and the custom claims. Only
      `hearth accounts export` prints password hashes.
      """,
    examples: [
      ("hearth accounts list", "the accounts of the server at http://127.0.0.1:8080"),
      ("hearth accounts list --json --limit 100000", "for programs"),
    ],
    run: { arguments in
      let limit = try arguments.integer("limit", in: 1...100_000_000) ?? 100
      var left = limit
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      let isJSON = arguments.has("json")
      try client.forEachPage { page in
        for user in page.prefix(left) {
          var json = JSONWriter(.compact)
          if isJSON { json.append(withoutSecrets(user)) }
          Terminal.output.write(isJSON ? json.bytes + [UInt8(ascii: "\n")] : Array(row(user).utf8))
        }
        left -= min(left, page.count)
        return left > 0
      }
      if left == limit, !isJSON { remark("no accounts in project \(client.project)") }
      return 0
    })

  /// Returns an account without the members that help to guess its password.
  private static func withoutSecrets(_ user: JSONTree) -> JSONTree {
    guard case .object(let members) = user.kind else { return user }
    return JSONTree(.object(members.filter { !["passwordHash", "salt", "rawPassword"].contains($0.name) }))
  }

  /// Returns the line of an account: ID, address, sign-in methods, whether it is disabled, and claims.
  private static func row(_ user: JSONTree) -> String {
    let providers = (user["providerUserInfo"]?.elements ?? []).compactMap { $0["providerId"]?.text }
    var cells = [
      user["localId"]?.text ?? "", user["email"]?.text ?? user["phoneNumber"]?.text ?? "-",
      providers.isEmpty
        ? (user["customAuth"]?.flag == true ? "custom" : "anonymous") : providers.joined(separator: ","),
    ]
    if user["disabled"]?.flag == true { cells.append("disabled") }
    if let claims = user["customAttributes"]?.text { cells.append(claims) }
    // Texts of other users must not control the terminal.
    return TerminalText.line(cells.joined(separator: "  ")) + "\n"
  }

  /// Creates an account.
  static let accountsCreate = Command(
    name: "accounts create", summary: "Creates an account and prints its ID.",
    options: AccountsClient.options + [
      .value("uid", "ID", "the ID of the account (default: a new ID)"),
      .value("email", "ADDRESS", "the email address"),
      .value("password", "PASSWORD", "the password; - reads it from standard input, which hides it from other users"),
      .value("name", "NAME", "the display name"),
      .value("phone", "NUMBER", "the phone number, such as +390551234567"),
      .flag("verified", "mark the email address as verified"),
    ],
    examples: [
      ("hearth accounts create --email ann@example.com --password -", "reads the password from standard input")
    ],
    run: { arguments in
      var password = arguments.value("password")
      if password == "-" {
        guard let line = readLine(strippingNewline: true) else {
          throw CommandFailure.usage("'--password -' reads a line from standard input, but standard input is empty")
        }
        password = line
      }
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      let made = try client.call("") { json in
        json.add("localId", arguments.value("uid"))
        json.add("email", arguments.value("email"))
        json.add("password", password)
        json.add("displayName", arguments.value("name"))
        json.add("phoneNumber", arguments.value("phone"))
        json.key("emailVerified")
        json.bool(arguments.has("verified"))
      }
      Terminal.output.write("\(made["localId"]?.text ?? "")\n")
      return 0
    })

  /// Deletes accounts, and ends their sessions.
  static let accountsDelete = Command(
    name: "accounts delete", summary: "Deletes accounts and ends their sessions.", operands: "UID…",
    operandCount: 1...1000,
    options: AccountsClient.options, details: "UID is the ID or the email address of an account.",
    examples: [("hearth accounts delete ann@example.com", "one account")],
    run: { arguments in
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      for name in arguments.operands {
        let uid = try client.uid(name)
        try client.call("delete") { $0.add("localId", uid) }
      }
      return 0
    })

  /// Sets the custom claims of an account.
  static let accountsSetClaims = Command(
    name: "accounts set-claims", summary: "Sets the custom claims of an account.",
    operands: "UID JSON", operandCount: 2...2, options: AccountsClient.options,
    details: """
      UID is the ID or the email address of the account. JSON is an object that replaces all custom claims; `{}`
      removes them. Tokens that are issued from now on contain the new claims.
      """,
    examples: [
      (#"hearth accounts set-claims ann@example.com '{"admin": true}'"#, "sets request.auth.token.admin in rules")
    ],
    run: { arguments in
      try change(arguments) { json in json.add("customAttributes", arguments.operands[1]) }
    })

  /// Disables an account, and ends its sessions.
  static let accountsDisable = Command(
    name: "accounts disable", summary: "Disables the sign-in of an account and ends its sessions.", operands: "UID",
    operandCount: 1...1, options: AccountsClient.options, details: "UID is the ID or the email address of the account.",
    examples: [("hearth accounts disable ann@example.com", "one account")],
    run: { arguments in try change(arguments) { setDisabled(true, &$0) } })

  /// Enables a disabled account.
  static let accountsEnable = Command(
    name: "accounts enable", summary: "Enables a disabled account.", operands: "UID", operandCount: 1...1,
    options: AccountsClient.options, details: "UID is the ID or the email address of the account.",
    examples: [("hearth accounts enable ann@example.com", "one account")],
    run: { arguments in try change(arguments) { setDisabled(false, &$0) } })

  private static func setDisabled(_ value: Bool, _ json: inout JSONWriter) {
    json.key("disableUser")
    json.bool(value)
  }

  private static func change(_ arguments: Arguments, _ append: (inout JSONWriter) -> Void) throws -> Int32 {
    let client = try AccountsClient(arguments)
    defer { client.finish() }
    let uid = try client.uid(arguments.operands[0])
    try client.call("update") { json in
      json.add("localId", uid)
      append(&json)
    }
    return 0
  }
}
