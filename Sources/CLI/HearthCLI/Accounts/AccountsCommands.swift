import Accounts
import DocumentModel
import WireFormat

/// AccountStore of people, one verb after the other; see ``Command/accountsExport`` for moving them.
extension Command {
  /// Lists accounts.
  static let accountsList = Command(
    name: "accounts list", summary: "Lists the accounts of a project.",
    options: AccountsClient.options + [
      .value("limit", "N", "how many (default: 100)"), .flag("json", "print one account a line, whole"),
    ],
    examples: [("hearth accounts list", ""), ("hearth accounts list --json --limit 100000", "for programs")],
    run: { arguments in
      let limit = try arguments.integer("limit", in: 1...100_000_000) ?? 100
      var left = limit
      let client = try AccountsClient(arguments)
      defer { client.finish() }
      try client.forEachPage { page in
        for user in page.prefix(left) {
          var json = JSONWriter(.compact)
          json.append(user)
          Terminal.output.write(arguments.has("json") ? json.bytes + [UInt8(ascii: "\n")] : Array(row(user).utf8))
        }
        left -= min(left, page.count)
        return left > 0
      }
      return 0
    })

  /// One line: id, address, how the account signs in, and what is special about it.
  private static func row(_ user: AccountsJSON) -> String {
    let providers = (user["providerUserInfo"]?.elements ?? []).compactMap { $0["providerId"]?.text }
    var cells = [
      user["localId"]?.text ?? "", user["email"]?.text ?? user["phoneNumber"]?.text ?? "-",
      providers.isEmpty
        ? (user["customAuth"]?.flag == true ? "custom" : "anonymous") : providers.joined(separator: ","),
    ]
    if user["disabled"]?.flag == true { cells.append("disabled") }
    if let claims = user["customAttributes"]?.text { cells.append(claims) }
    // Names that others chose must not steer a terminal.
    return TerminalText.line(cells.joined(separator: "  ")) + "\n"
  }

  /// Makes an account.
  static let accountsCreate = Command(
    name: "accounts create", summary: "Makes an account and prints its id.",
    options: AccountsClient.options + [
      .value("uid", "ID", "its id (default: one that nobody has)"),
      .value("email", "ADDRESS", "its e-mail address"),
      .value("password", "PASSWORD", "its password; - reads it from standard input, out of sight of other users"),
      .value("name", "NAME", "the name shown to others"),
      .value("phone", "NUMBER", "its telephone number, such as +390551234567"),
      .flag("verified", "the e-mail address is known to be the person's"),
    ],
    examples: [("hearth accounts create --email ann@example.com --password -", "")],
    run: { arguments in
      var password = arguments.value("password")
      if password == "-" {
        guard let line = readLine(strippingNewline: true) else {
          throw CommandFailure.usage("'--password -' reads a line from standard input, where there is none")
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

  /// Deletes accounts.
  static let accountsDelete = Command(
    name: "accounts delete", summary: "Deletes accounts; their sessions end.", operands: "UID…", operandCount: 1...1000,
    options: AccountsClient.options, details: "UID is an account's id or e-mail address.",
    examples: [("hearth accounts delete ann@example.com", "")],
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
    name: "accounts set-claims", summary: "Sets what the tokens of an account claim beside who it is.",
    operands: "UID JSON", operandCount: 2...2, options: AccountsClient.options,
    details: "The claims take the place of those before, in tokens made from now on. {} takes them away.",
    examples: [(#"hearth accounts set-claims ann@example.com '{"admin": true}'"#, "request.auth.token.admin in rules")],
    run: { arguments in
      try change(arguments) { json in json.add("customAttributes", arguments.operands[1]) }
    })

  /// Refuses an account sign-in.
  static let accountsDisable = Command(
    name: "accounts disable", summary: "Refuses an account sign-in, and ends its sessions.", operands: "UID",
    operandCount: 1...1, options: AccountsClient.options, details: "UID is the account's id or e-mail address.",
    examples: [("hearth accounts disable ann@example.com", "")],
    run: { arguments in try change(arguments) { setDisabled(true, &$0) } })

  /// Lets an account sign in again.
  static let accountsEnable = Command(
    name: "accounts enable", summary: "Lets a disabled account sign in again.", operands: "UID", operandCount: 1...1,
    options: AccountsClient.options, details: "UID is the account's id or e-mail address.",
    examples: [("hearth accounts enable ann@example.com", "")],
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
