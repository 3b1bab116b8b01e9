import Accounts
import DocumentModel
import DocumentStore
import Transport

extension TestServer {
  /// As whom a request is made, without a token.
  public enum Caller: Sendable {
    /// An administrator, whom no rules concern.
    case admin
    /// Somebody who is signed in, by uid, with further claims for `request.auth.token`. There need be no such account.
    case user(_ uid: String, claims: Claims = [:])
    /// Somebody who is not signed in.
    case nobody
  }

  /// What a token says of its holder, written as a dictionary: `["role": "editor", "level": 3]`.
  public struct Claims: Sendable, ExpressibleByDictionaryLiteral {
    var fields: [(name: String, value: Claim)]

    /// Claims by their names; of two with one name the last stands.
    public init(dictionaryLiteral elements: (String, Claim)...) { fields = elements.map { ($0, $1) } }

    var map: MapValue { MapValue(fields.map { ($0.name, $0.value.value) }) }
  }

  /// One claim's value.
  public indirect enum Claim: Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
  {
    /// A text.
    case string(String)
    /// A truth value.
    case boolean(Bool)
    /// A whole number.
    case integer(Int64)
    /// Another number.
    case double(Double)
    /// A list.
    case array([Claim])
    /// Values by name.
    case map(Claims)

    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Another number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// A list.
    public init(arrayLiteral elements: Claim...) { self = .array(elements) }
    /// Values by name.
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

  /// A request in any of the server's dialects.
  public struct Request: Sendable {
    /// The method, such as `GET`.
    public var method: String
    /// The path, and a query behind `?`, percent-encoded.
    public var path: String
    /// The header fields.
    public var headers: [(name: String, value: String)]
    /// The body, neither chunked nor compressed.
    public var body: [UInt8]

    /// Describes a request.
    public init(_ method: String, _ path: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
      self.method = method
      self.path = path
      self.headers = headers
      self.body = body
    }

    /// Describes a request with a text for a body.
    public init(_ method: String, _ path: String, headers: [(name: String, value: String)] = [], body: String) {
      self.init(method, path, headers: headers, body: Array(body.utf8))
    }
  }

  /// Answers a request as the server does behind its port, and as fast as the reply's body is read.
  ///
  /// `caller` says who asks; an `authorization` header of the request's own stands above it, so that tokens that
  /// accounts were given work as well.
  /// - Throws: `CancellationError` where the task is cancelled before there is a reply.
  public func respond(to request: Request, as caller: Caller = .nobody) async throws -> Response {
    let life = currentLife
    let call = CallBox()
    let head = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        call.put(life.local.answer(local(request, caller, life)) { continuation.resume(returning: $0) })
      }
    } onCancel: {
      call.cancel()
    }
    guard let head, let call = call.take() else { throw CancellationError() }
    return Response(head, call)
  }

  private func local(_ request: Request, _ caller: Caller, _ life: TestLife) -> LocalRequest {
    var fields = request.headers
    if !fields.contains(where: { $0.name.lowercased() == "authorization" }), let token = token(of: caller, life) {
      fields.append(("authorization", "Bearer \(token)"))
    }
    if !fields.contains(where: { $0.name.lowercased() == "host" }) { fields.append(("host", "localhost")) }
    return LocalRequest(HTTPMethod(request.method), request.path, fields: fields, body: request.body)
  }

  /// What emulator mode takes for a caller: `nil` for nobody.
  private func token(of caller: Caller, _ life: TestLife) -> String? {
    switch caller {
    case .admin: return "owner"
    case .nobody: return nil
    case .user(let uid, let claims):
      let now = life.time.clock.now() / 1_000_000
      // As the web SDK makes them for an emulator (auth-api.md).
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
