import DocumentStore
import Glibc
import Synchronization
import WebClient
import WireFormat

/// The bearer token of the requests to a server, and the way to get another one when it expires. Several threads may
/// use it.
final class Credential: Sendable {
  /// The origin of the tokens.
  private enum Source: Sendable {
    case fixed(String)
    /// A file that another program keeps up to date.
    case file(String)
    /// A command line for the shell, whose output is the token.
    case command(String)
    /// A credentials file, and the URL of the endpoint that exchanges its proof for a token. If the file is set for
    /// other programs and the endpoint refuses it, the default token is used.
    case key(AccountKey, endpoint: String, authoritiesFile: String?, isOptional: Bool = false)
  }

  private struct State {
    var token: String?
    /// The time at which the token is fetched again, in seconds since 1970.
    var endSeconds = Int64.max
  }

  private let source: Source
  private let state = Mutex(State())
  /// Whether the credential is a person's. Some services of Google then require the name of a project to bill.
  let isPersonal: Bool
  /// The reason why the file of `GOOGLE_APPLICATION_CREDENTIALS` is ignored, or `nil` if it is used or not set.
  let ignoredKey: String?

  /// The default token. In emulator mode, `owner` is the administrator of every project.
  private static let standard = "owner"
  /// The time before its end at which a token is replaced, in seconds.
  private static let marginSeconds: Int64 = 120
  /// The time after which a token file is read again, in seconds.
  private static let fileSeconds: Int64 = 30
  /// The longest output of a token command, in bytes.
  private static let tokenBytesMax = 16 << 10

  /// Creates a credential with a fixed token.
  init(token: String) {
    (source, isPersonal, ignoredKey) = (.fixed(token), false, nil)
  }

  /// Creates the credential that options name, for requests over the admin socket: none, unless they name a token. The
  /// environment is ignored, because an administrator needs no other credential.
  /// - Throws: ``CommandFailure`` if several options are given, or if `--key` is given.
  init(overAdminSocket arguments: Arguments) throws {
    let options = ["token", "token-file", "token-command", "key"].filter(arguments.has)
    if options.count > 1 { throw arguments.refusal(of: options, "exclude each other; give only one of them") }
    (isPersonal, ignoredKey) = (false, nil)
    switch options.first {
    case nil: source = .fixed("")
    case "token-file": source = .file(arguments.value("token-file") ?? "")
    case "token-command": source = .command(arguments.value("token-command") ?? "")
    case "key":
      throw arguments.refusal(of: ["key"], "is not needed with --data: the owner of the directory is an administrator")
    default: source = .fixed(arguments.value("token") ?? "")
    }
  }

  /// Creates the credential that options or environment name, for the server at a URL.
  ///
  /// An option overrides the environment. `GOOGLE_APPLICATION_CREDENTIALS` is used only for the server that its key
  /// belongs to, because it is usually set for other programs.
  ///
  /// `prefix` is that of the options: `from-` for the server of `--from`, to which `HEARTH_KEY` and `HEARTH_TOKEN` do not
  /// apply.
  /// - Throws: ``CommandFailure`` if several options are given, or if the token or the key cannot be used.
  init(_ arguments: Arguments, server url: String, prefix: String = "") throws {
    let options = ["token", "token-file", "token-command", "key"].map { prefix + $0 }.filter(arguments.has)
    if options.count > 1 { throw arguments.refusal(of: options, "exclude each other; give only one of them") }
    let authorities = DatabaseChoice.authorities(arguments)
    var chosen = Source.fixed(Self.standard)
    var ignored: String?
    let value = options.first.flatMap { arguments.value($0) } ?? ""
    switch options.first?.dropFirst(prefix.count) {
    case "token": chosen = .fixed(value)
    case "token-file": chosen = .file(value)
    case "token-command": chosen = .command(value)
    case "key":
      let key = try AccountKey(value)
      chosen = .key(key, endpoint: try Self.endpoint(of: key, for: url), authoritiesFile: authorities)
    default:
      if prefix.isEmpty, let key = try DatabaseChoice.key(arguments) {
        chosen = .key(key, endpoint: try Self.endpoint(of: key, for: url), authoritiesFile: authorities)
      } else if prefix.isEmpty, let token = DatabaseChoice.environment("HEARTH_TOKEN") {
        chosen = .fixed(token)
      } else {
        switch Self.applicationKey(for: url) {
        case .own(let key):
          chosen = .key(
            key, endpoint: try Self.endpoint(of: key, for: url), authoritiesFile: authorities,
            isOptional: !key.isGoogles)
        case .ignored(let reason): ignored = reason
        case nil: break
        }
      }
    }
    ignoredKey = ignored
    source = chosen
    if case .key(let key, _, _, _) = chosen { isPersonal = key.isPersonal } else { isPersonal = true }
    if case .fixed(let token) = chosen {
      guard Self.isToken(token) else {
        throw CommandFailure.usage("'--\(prefix)token' must be printable ASCII without spaces")
      }
    }
  }

  /// Whether the token is the default, which servers in production mode reject.
  var isDefault: Bool {
    if case .fixed(Self.standard) = source { return true }
    return state.withLock { $0.token == Self.standard }
  }

  /// The key that `GOOGLE_APPLICATION_CREDENTIALS` names.
  enum ApplicationKey {
    /// The key of the server.
    case own(AccountKey)
    /// A file that cannot be used for the server, and the reason.
    case ignored(String)
  }

  /// Returns the key that `GOOGLE_APPLICATION_CREDENTIALS` names, or `nil` if the variable is not set.
  static func applicationKey(for url: String) -> ApplicationKey? {
    guard let path = DatabaseChoice.environment("GOOGLE_APPLICATION_CREDENTIALS") else { return nil }
    let key: AccountKey
    do { key = try AccountKey(path) } catch { return .ignored(CommandFailure(error).message) }
    let isOwn = key.isGoogles ? WebHost.isGoogles(url) : key.serverURL == ServerClient.normalized(url)
    guard isOwn else {
      let owner = key.isGoogles ? "Google Cloud" : key.serverURL ?? key.tokenURL
      return .ignored("\(path) is a key of \(owner), not of \(url)")
    }
    return .own(key)
  }

  /// Returns the URL of the endpoint that exchanges a key's proof.
  /// - Throws: ``CommandFailure`` if the key is not for this server: a token gives rights in a whole project, so it is
  ///   never sent to another one.
  private static func endpoint(of key: AccountKey, for url: String) throws -> String {
    if key.isGoogles {
      guard WebHost.isGoogles(url), url.hasPrefix("https://") else {
        throw CommandFailure.usage(
          "\(key.path) is a key of Google Cloud, whose tokens are sent only to https://….googleapis.com; for \(url), "
            + "name a key that `hearth keys create` wrote")
      }
      return key.tokenURL
    }
    guard !WebHost.isGoogles(url) else {
      throw CommandFailure.usage(
        "\(key.path) is a key of the server \(key.serverURL ?? key.tokenURL); for \(url), name the key of a service "
          + "account of Google Cloud")
    }
    // The proof is valid at the key's own server. Another server could use it there, except a tunnel of this machine.
    let address = ServerClient.normalized(url)
    guard key.serverURL == address || WebHost.isLoopback(address) else {
      throw CommandFailure.usage(
        "\(key.path) is a key of the server \(key.serverURL ?? key.tokenURL), so its proof is not sent to \(url); "
          + "create a key for this address with `hearth keys create --url \(address)`")
    }
    return address + "/token"
  }

  private static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }

  // MARK: Tokens

  /// Returns a token. Fetches it if none was fetched yet, or if it is about to expire. Other threads wait meanwhile,
  /// because they need the same token.
  /// - Throws: ``CommandFailure`` if no token can be fetched.
  func token() throws -> String {
    try state.withLock { state in
      if let token = state.token, Self.nowSeconds < state.endSeconds { return token }
      return try fetch(&state)
    }
  }

  /// Fetches another token after the server rejected `token`. Returns whether there is another one.
  /// - Throws: ``CommandFailure`` if no token can be fetched.
  func renew(after token: String) throws -> Bool {
    if case .fixed = source { return false }
    return try state.withLock { state in
      // Another thread may have fetched a new one meanwhile.
      if let current = state.token, current != token { return true }
      return try fetch(&state) != token
    }
  }

  private func fetch(_ state: inout State) throws -> String {
    let (token, seconds) = try fetch()
    state.token = token
    state.endSeconds = seconds.map { Self.nowSeconds + $0 } ?? .max
    return token
  }

  /// Returns a token, and the seconds after which to fetch the next one; `nil` if it is used until it is rejected.
  private func fetch() throws -> (token: String, seconds: Int64?) {
    switch source {
    case .fixed(let token): return (token, nil)
    case .file(let path):
      guard let file = fopen(path, "re") else {
        throw CommandFailure.data("\(path) cannot be read: \(String(cString: strerror(errno)))")
      }
      defer { fclose(file) }
      return (try Self.token(in: file, of: path), Self.fileSeconds)
    case .command(let line):
      guard let pipe = popen(line, "re") else {
        throw CommandFailure.failed("'\(line)' cannot be started: \(String(cString: strerror(errno)))")
      }
      let token = Result { try Self.token(in: pipe, of: "'\(line)'") }
      let status = pclose(pipe)
      guard status == 0 else {
        throw CommandFailure.failed("'--token-command \(line)' failed with the exit code \(status >> 8 & 0xFF)")
      }
      return (try token.get(), nil)
    case .key(let key, let endpoint, let authorities, let isOptional):
      do { return try Self.exchange(key, endpoint, authorities) } catch let failure as CommandFailure
        where isOptional && !failure.isTemporary
      {
        return (Self.standard, nil)
      }
    }
  }

  private static func token(in file: UnsafeMutablePointer<FILE>, of name: String) throws -> String {
    var bytes = [UInt8](repeating: 0, count: tokenBytesMax)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    let isSpace: (UInt8) -> Bool = { $0 <= 0x20 }
    let text = bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    let token = String(decoding: text, as: UTF8.self)
    guard isToken(token) else { throw CommandFailure.data("\(name) does not contain a token on a single line") }
    return token
  }

  private static func exchange(
    _ key: AccountKey, _ endpoint: String, _ authorities: String?
  ) throws -> (token: String, seconds: Int64?) {
    let (server, target) = WebHost.parts(of: endpoint)
    let (host, port, isSecure) = try ServerClient.address(server)
    var options = HTTPClient.Options()
    options.authoritiesFile = authorities
    let http = HTTPClient(host: host, port: port, isSecure: isSecure, options: options)
    let retries = Retries()
    let response = try retries.run { _ in
      let response = try http.send(
        "POST", target, headers: [("Content-Type", "application/x-www-form-urlencoded")],
        body: try key.tokenRequest(nowSeconds: nowSeconds))
      if CommandFailure.isTemporary(httpStatus: response.status) {
        var failure = CommandFailure.failed("\(endpoint) responded \(response.status)")
        (failure.isTemporary, failure.httpStatus) = (true, response.status)
        throw failure
      }
      return response
    }
    let parts = try? JSONText.read(response.body) { root in
      (
        token: root.member("access_token")?.text, seconds: root.member("expires_in")?.integer,
        error: root.member("error_description")?.text ?? root.member("error")?.text
      )
    }
    guard response.status == 200, let token = parts?.token, isToken(token) else {
      throw CommandFailure.failed(
        "\(endpoint) does not accept the key \(key.path): "
          + TerminalText.line(parts?.error ?? "it responded \(response.status)")
          + (key.isGoogles
            ? "" : "\nif the key was revoked or is for another server, create one with `hearth keys create --url URL`"))
    }
    return (token, Int64(parts?.seconds ?? 3600) - marginSeconds)
  }

  private static var nowSeconds: Int64 { Clock.system.now() / 1_000_000 }
}
