import Accounts
import DocumentModel
import DocumentStore
import WireFormat

extension Command {
  /// Prints an ID token of a user, for tests.
  static let token = Command(
    name: "token", summary: "Prints an ID token of a user, for tests.", operands: "UID", operandCount: 1...1,
    options: AccountsChoice.options + [
      .value("claims", "JSON", "additional claims, such as '{\"role\": \"editor\"}'"),
      .value("provider", "NAME", "the sign-in provider (default: custom)"),
      .flag("unsigned", "print an unsigned token, as without --data and --server"),
    ],
    details: """
      A server in emulator mode accepts unsigned tokens. For a signed token, which a production server accepts, give
      its data directory with --data, or its URL with --server and the access token of an administrator with --token.
      The token is valid for one hour. The user does not need to exist.
      """,
    examples: [
      ("hearth token ann", "unsigned, for a server in emulator mode"),
      ("hearth token ann --claims '{\"role\": \"editor\"}' --data ./hearth-data", "signed"),
      ("hearth get users/ann --token \"$(hearth token ann)\"", "a request as ann"),
    ],
    run: { arguments in
      Terminal.output.write(try makeToken(arguments) + "\n")
      return 0
    })

  private static func makeToken(_ arguments: Arguments) throws -> String {
    var request = MapValue([("uid", .string(arguments.operands[0]))])
    request["provider"] = arguments.value("provider").map(Value.string)
    if let text = arguments.value("claims") {
      guard let claims = MapValue(json: Array(text.utf8)) else {
        throw CommandFailure.usage("'--claims' must be a JSON object, such as '{\"role\": \"editor\"}'")
      }
      if let name = ReservedClaims.first(in: claims) {
        throw CommandFailure.usage("'--claims' must not contain \"\(name)\", which every token has already")
      }
      request["claims"] = .map(claims)
    }
    let now = Clock.system.now() / 1_000_000
    guard let user = SignedInUser(test: request, nowSeconds: now) else {
      throw CommandFailure.usage("UID must have 1 to \(AccountStore.uidCharactersMax) characters")
    }
    if arguments.has("unsigned") || (arguments.value("data") == nil && arguments.value("server") == nil) {
      let project = AccountsProject(DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject)
      return JSONWebToken.unsigned(
        user.claims(project: project, issuedSeconds: now, lifetimeSeconds: AccountStore.idTokenSeconds))
    }
    switch try AccountsChoice.find(arguments) {
    case .directory(let accounts, let directory):
      return try withExtendedLifetime(directory) { try accounts.mintIDToken(for: user) }
    case .server(let client):
      let body = try client.call("POST", "/hearth/v1/tokens", request.json) ?? []
      guard let token = MapValue(json: body)?.text("idToken") else {
        throw CommandFailure.failed("the response of \(client.address) contains no token")
      }
      return token
    }
  }
}
