package import Transport

/// The kind of a request, under which it is counted and logged: mostly its API. The raw values are indexes into the
/// transport's counters.
package enum RequestKind: Int, CaseIterable, Sendable {
  /// Unknown: the transport rejected the request, or no path matched.
  case none
  case rest
  case grpc
  case channel
  /// Files, except transfers of their content.
  case files
  case upload
  case download
  /// Accounts, except sign-in.
  case accounts
  case signIn
  case keys
  /// Control by tools and test suites.
  case control
  case operations
  /// Files of web apps, and the scripts that configure the web SDK.
  case hosting

  /// The name in metrics and logs.
  package var label: String { self == .signIn ? "sign_in" : "\(self)" }
}

extension Exchange {
  /// Sets the kind of the request. Call it before the response.
  @inline(__always)
  package func setKind(_ kind: RequestKind) { self.kind = kind.rawValue }
}
