import DocumentModel

/// A state that decides about a read.
enum DecidingState {
  case past(Int64, Timestamp)
  case newest

  /// The version; `nil` for the newest one.
  var version: Int64? { if case .past(let version, _) = self { version } else { nil } }

  /// Returns a denial that names the state, if denials include reasons.
  func explaining(_ denial: Status, _ authorizer: Authorizer) -> Status {
    guard authorizer.explains, denial.code == .permissionDenied else { return denial }
    let explanation =
      switch self {
      case .past(_, let time): "\nThe state at the read time (\(time)) denies this request."
      case .newest: "\nThe newest state denies this request. It must allow a read in the past as well."
      }
    return Status(.permissionDenied, denial.message + explanation)
  }
}

/// The last state by which the rules allowed a response.
struct Authorization {
  /// The newest version then.
  var version: Int64
  /// The time, in microseconds since 1970.
  var time: Int64

  /// Whether the rest of the response must be authorized again if there were commits.
  func isOld(at now: Int64) -> Bool { now - time >= Int64(Limits.authorizationAgeSecondsMax) * 1_000_000 }
}
