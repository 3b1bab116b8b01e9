import Accounts
import IdentityService
import WireFormat

/// A kind of request: how its fields are decoded, the function of the service that it calls, and how the result is
/// encoded.
struct IdentityCall: Sendable {
  /// The resource that a request needs most.
  enum Work: Sendable {
    case short, password, batch
    /// A password is hashed if the request has this field.
    case passwordIf(StaticString)
    /// The request waits for another provider if it contains a code of one, or asks for the page of one.
    case providerIfNamed
  }

  /// The response to a request.
  struct Response: Sendable {
    var body: [UInt8]
    /// The URL to redirect the client to.
    var location: String?
  }

  private let work: Work
  private let run: @Sendable (AccountsService, AccountsCaller, IdentityRequest) throws -> Response

  /// Creates a call that encodes its response itself.
  init(
    work: Work = .short,
    _ run: @escaping @Sendable (AccountsService, AccountsCaller, IdentityRequest) throws -> Response
  ) {
    self.work = work
    self.run = run
  }

  /// Creates a call. `kind` is the response's member of that name; `encode` writes the other members.
  init<Request, Result>(
    kind: StaticString? = nil, work: Work = .short,
    _ decode: @escaping @Sendable (IdentityRequest) throws -> Request,
    _ function: @escaping @Sendable (AccountsService) -> (Request, AccountsCaller) throws -> Result,
    _ encode: @escaping @Sendable (Result, inout JSONWriter) -> Void
  ) {
    self.init(work: work) { service, caller, request in
      let result = try function(service)(try decode(request), caller)
      return .object(kind) { encode(result, &$0) }
    }
  }

  /// The queue of a request.
  func workload(of request: IdentityRequest) -> AccountsService.Workload {
    switch work {
    case .short: .short
    case .password: .password
    case .batch: .batch
    case .passwordIf(let field): request[field] == nil ? .short : .password
    case .providerIfNamed: request.returned != nil || request.text("providerId") != nil ? .provider : .short
    }
  }

  /// Makes the call. Call it on a thread that may block.
  ///
  /// - Throws: `AccountError`, `TokenError` or `StorageError`.
  func respond(to request: IdentityRequest, _ service: AccountsService, _ caller: AccountsCaller) throws -> Response {
    if request.text("tenantId") != nil { throw AccountError(.unsupportedTenantOperation) }
    return try run(service, caller, request)
  }
}

extension IdentityCall.Response {
  /// Creates a response with the member `kind`; `append` writes the other members.
  static func object(_ kind: StaticString? = nil, _ append: (inout JSONWriter) -> Void = { _ in }) -> Self {
    var json = JSONWriter(.compact)
    json.object { json in
      if let kind { json.text("kind", "identitytoolkit#\(kind)") }
      append(&json)
    }
    return Self(body: json.bytes)
  }
}

extension JSONWriter {
  /// Appends the tokens of a sign-in as members.
  mutating func members(_ outcome: SignInOutcome) {
    text("idToken", outcome.idToken)
    text("refreshToken", outcome.refreshToken)
    text("expiresIn", "\(AccountStore.idTokenSeconds)")
  }
}
