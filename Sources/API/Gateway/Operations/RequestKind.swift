import Transport

/// What a request is counted and logged as: mostly the dialect it is in. The numbers are places in the transport's
/// counters.
package enum RequestKind: Int, CaseIterable, Sendable {
  /// Nobody's: the transport refused it, or no path is like it.
  case none
  case rest
  case grpc
  case channel
  /// Files, beside their content.
  case files
  case upload
  case download
  /// AccountStore, beside signing in.
  case accounts
  case signIn
  case keys
  /// What tools and test suites do to a server.
  case control
  case operations

  /// How metrics and logs call it.
  package var label: String { self == .signIn ? "sign_in" : "\(self)" }
}

extension Exchange {
  /// Says what the request is, once that is known and before it is answered.
  @inline(__always)
  func claim(_ kind: RequestKind) { self.kind = kind.rawValue }
}
