import Accounts
import DocumentModel
import DocumentStore
import Transport

extension TestServer {
  /// The identity of a request's caller, without a token.
  public enum Caller: Sendable {
    /// An administrator. Rules are not evaluated.
    case admin
    /// A signed-in user with a uid and additional claims for `request.auth.token`. The account need not exist.
    case user(_ uid: String, claims: Claims = [:])
    /// An unauthenticated caller.
    case nobody
  }

  /// The claims of a token, written as a dictionary: `["role": "editor", "level": 3]`.
  public struct Claims: Sendable, ExpressibleByDictionaryLiteral {
    var fields: [(name: String, value: Claim)]

    /// Creates claims from names and values. If a name occurs twice, the last value wins.
    public init(dictionaryLiteral elements: (String, Claim)...) { fields = elements.map { ($0, $1) } }

    var map: MapValue { MapValue(fields.map { ($0.name, $0.value.value) }) }
  }

  /// The value of a claim.
  public indirect enum Claim: Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
  {
    /// A string.
    case string(String)
    /// A Boolean.
    case boolean(Bool)
    /// An integer.
    case integer(Int64)
    /// A floating-point number.
    case double(Double)
    /// An array.
    case array([Claim])
    /// A map.
    case map(Claims)

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a floating-point number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Creates an array.
    public init(arrayLiteral elements: Claim...) { self = .array(elements) }
    /// Creates a map.
    public init(dictionaryLiteral elements: (String, Claim)...) {
      var claims = Claims()
      claims.fields = elements.map { ($0, $1) }
      self = .map(claims)
    }

    var value: Value {
      switch self {
      case .string(let text): .string(text)
      case .boolean(let flag): .boolean(flag)
      case .integer(let number): .integer(number)
      case .double(let number): .double(number)
      case .array(let claims): .array(claims.map(\.value))
      case .map(let claims): .map(claims.map)
      }
    }
  }

  /// A request to any API of the server.
  public struct Request: Sendable {
    /// The method, such as `GET`.
    public var method: String
    /// The percent-encoded path, with an optional query after `?`.
    public var path: String
    public var headers: [(name: String, value: String)]
    /// The body, neither chunked nor compressed.
    public var body: [UInt8]

    /// Creates a request.
    public init(_ method: String, _ path: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
      self.method = method
      self.path = path
      self.headers = headers
      self.body = body
    }

    /// Creates a request with a text as its body.
    public init(_ method: String, _ path: String, headers: [(name: String, value: String)] = [], body: String) {
      self.init(method, path, headers: headers, body: Array(body.utf8))
    }
  }

  /// Returns the response to a request, as the server would send it on its port. The body is produced as fast as it
  /// is read.
  ///
  /// `caller` is the identity of the caller. An `authorization` header in the request overrides it, so tokens of
  /// accounts work too.
  /// - Throws: `CancellationError` if the task is cancelled before the response begins.
  public func respond(to request: Request, as caller: Caller = .nobody) async throws -> Response {
    let state = currentState
    let call = CancellableCall()
    let head = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        call.put(state.local.answer(local(request, caller, state)) { continuation.resume(returning: $0) })
      }
    } onCancel: {
      call.cancel()
    }
    guard let head, let call = call.call else { throw CancellationError() }
    return Response(head, call)
  }

  private func local(_ request: Request, _ caller: Caller, _ state: TestServerState) -> LocalRequest {
    var fields = request.headers
    if !fields.contains(where: { $0.name.lowercased() == "authorization" }), let token = token(of: caller, state) {
      fields.append(("authorization", "Bearer \(token)"))
    }
    if !fields.contains(where: { $0.name.lowercased() == "host" }) { fields.append(("host", "localhost")) }
    return LocalRequest(HTTPMethod(request.method), request.path, fields: fields, body: request.body)
  }

  /// Returns the token that identifies a caller in emulator mode, or `nil` for an unauthenticated caller.
  private func token(of caller: Caller, _ state: TestServerState) -> String? {
    switch caller {
    case .admin: return "owner"
    case .nobody: return nil
    case .user(let uid, let claims):
      let now = state.time.clock.now() / 1_000_000
      // These are the claims of the web SDK's tokens for an emulator (auth-api.md).
      var all = MapValue([
        ("iss", .string("https://securetoken.google.com/\(project)")), ("aud", .string(project)),
        ("sub", .string(uid)), ("user_id", .string(uid)), ("auth_time", .integer(now)), ("iat", .integer(now)),
        ("exp", .integer(now + 3600)),
        ("firebase", .map(MapValue([("sign_in_provider", .string("custom")), ("identities", .map(MapValue()))]))),
      ])
      for (name, value) in claims.map.entries { all[name] = value }
      return JSONWebToken.unsigned(all)
    }
  }
}

extension HTTPMethod {
  fileprivate init(_ name: String) {
    self =
      switch name.uppercased() {
      case "GET": .get
      case "HEAD": .head
      case "POST": .post
      case "PUT": .put
      case "PATCH": .patch
      case "DELETE": .delete
      case "OPTIONS": .options
      default: .other
      }
  }
}
