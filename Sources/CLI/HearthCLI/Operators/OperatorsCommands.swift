import Accounts
import DocumentModel
import WireFormat

extension Command {
  private static let role = Option.choice(
    "role", OperatorRole.allCases.map(\.rawValue), "the role of the operator in the console")
  private static let generate = Option.flag("generate", "make a random password and print it")

  /// Adds an operator of the console.
  static let operatorsAdd = Command(
    name: "operators add", summary: "Adds an operator of the console of a production server.",
    operands: "NAME", operandCount: 1...1,
    options: AccountsChoice.options + [role.withHelp("the role of the operator (default: viewer)"), generate],
    details: """
      A viewer reads everything and changes nothing. An editor also changes documents, users and files. An owner also
      manages keys, operators and backups. Operators are not users of apps. They belong to one project, and can sign in only
      to the console of that project: with --project, name the project of `hearth serve`. The default is the only
      project of the data directory, or `demo` for a new one.

      The verb asks for the password. Without a terminal, it reads the password from the first line of standard input. A
      password has at least \(Operators.passwordCharactersMin) characters.

      The console needs an address of its own: see --console-address of `hearth serve`.
      """,
    examples: [
      ("hearth operators add ann --role owner --project shop --data ./hearth-data", "asks for the password"),
      ("hearth operators add bob --generate --project shop --data ./hearth-data", "a viewer with a random password"),
    ],
    run: { arguments in
      let name = arguments.operands[0]
      guard Operator.isName(name) else {
        throw CommandFailure.usage(
          "NAME must have 1 to 64 lower-case letters, digits, dots, dashes, underscores and @, and begin with a letter")
      }
      let role = try chosenRole(arguments) ?? .viewer
      let choice = try AccountsChoice.find(arguments, createsDirectory: true)
      let (password, isMade) = try OperatorPassword.choose(arguments)
      let project: String?
      switch choice {
      case .directory(let accounts, let directory):
        try withExtendedLifetime(directory) { try accounts.operators.add(name, role: role, password: password) }
        project = accounts.project.id
      case .server(let client):
        let body = MapValue([
          ("name", .string(name)), ("role", .string(role.rawValue)), ("password", .string(password)),
        ])
        project = Self.project(in: try client.call("POST", "/hearth/v1/operators", body.json))
      }
      if isMade { Terminal.output.write(password + "\n") }
      Terminal.error.write("hearth: added the operator \(name)\(of(project)), with the role \(role.rawValue)\n")
      return 0
    })

  /// Lists the operators of the console.
  static let operatorsList = Command(
    name: "operators list", summary: "Lists the operators of the console.",
    options: AccountsChoice.options + [.flag("json", "print JSON")],
    examples: [("hearth operators list --data ./hearth-data", "name, role and creation time of each")],
    run: { arguments in
      let list: [UInt8]
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        list = withExtendedLifetime(directory) { Operators.list(accounts.operators.all) }
      case .server(let client): list = try client.call("GET", "/hearth/v1/operators") ?? []
      }
      guard !arguments.has("json") else {
        Terminal.output.write(list + [UInt8(ascii: "\n")])
        return 0
      }
      let lines = try JSONText.read(list) { root in
        try (root.member("operators")?.array ?? []).map { person in
          let created = try Timestamp(seconds: Int64(person.member("createdSeconds")?.integer ?? 0), nanos: 0)
          return "\(person.member("name")?.text ?? "")  \(person.member("role")?.text ?? "")  \(created)\n"
        }
      }
      Terminal.output.write(lines.isEmpty ? "no operators\n" : lines.joined())
      return 0
    })

  /// Changes the password or the role of an operator.
  static let operatorsSet = Command(
    name: "operators set", summary: "Sets the password or the role of an operator, and ends the operator's sessions.",
    operands: "NAME", operandCount: 1...1,
    options: AccountsChoice.options + [role, .flag("password", "ask for a new password"), generate],
    examples: [
      ("hearth operators set ann --password --data ./hearth-data", "asks for the new password"),
      ("hearth operators set bob --role editor --data ./hearth-data", "a new role"),
    ],
    run: { arguments in
      let name = arguments.operands[0]
      let role = try chosenRole(arguments)
      guard role != nil || arguments.has("password") || arguments.has("generate") else {
        throw CommandFailure.usage("name what to set: --password, --generate or --role")
      }
      try requireName(name)
      let choice = try AccountsChoice.find(arguments)
      let hasPassword = arguments.has("password") || arguments.has("generate")
      let chosen = hasPassword ? try OperatorPassword.choose(arguments) : nil
      let project: String?
      switch choice {
      case .directory(let accounts, let directory):
        project = accounts.project.id
        try withExtendedLifetime(directory) {
          if let chosen { try accounts.operators.setPassword(chosen.password, of: name) }
          if let role { try accounts.operators.setRole(role, of: name) }
        }
      case .server(let client):
        var body = MapValue()
        body["role"] = role.map { .string($0.rawValue) }
        body["password"] = chosen.map { .string($0.password) }
        project = Self.project(in: try client.call("PATCH", "/hearth/v1/operators/\(name)", body.json))
      }
      if let chosen, chosen.isMade { Terminal.output.write(chosen.password + "\n") }
      Terminal.error.write("hearth: changed the operator \(name)\(of(project))\n")
      return 0
    })

  /// Removes an operator of the console.
  static let operatorsRemove = Command(
    name: "operators remove", summary: "Removes an operator, and ends the operator's sessions.", operands: "NAME",
    operandCount: 1...1, options: AccountsChoice.options,
    examples: [("hearth operators remove bob --data ./hearth-data", "")],
    run: { arguments in
      let name = arguments.operands[0]
      try requireName(name)
      let project: String?
      switch try AccountsChoice.find(arguments) {
      case .directory(let accounts, let directory):
        project = accounts.project.id
        try withExtendedLifetime(directory) { try accounts.operators.remove(name) }
      case .server(let client): project = Self.project(in: try client.call("DELETE", "/hearth/v1/operators/\(name)"))
      }
      Terminal.error.write("hearth: removed the operator \(name)\(of(project))\n")
      return 0
    })

  /// Returns the project in the response of a server, or `nil` if the server is too old to name it.
  private static func project(in response: [UInt8]?) -> String? {
    response.flatMap { MapValue(json: $0)?.text("project") }
  }

  /// Returns the words that name the project of an operator.
  private static func of(_ project: String?) -> String { project.map { " of project \(TerminalText.line($0))" } ?? "" }

  private static func requireName(_ name: String) throws {
    guard Operator.isName(name) else { throw CommandFailure.failed("no operator is named '\(name)'") }
  }

  private static func chosenRole(_ arguments: Arguments) throws -> OperatorRole? {
    guard let text = arguments.value("role") else { return nil }
    guard let role = OperatorRole(rawValue: text) else {
      throw arguments.refusal(of: "role", text, "must be viewer, editor or owner")
    }
    return role
  }
}
