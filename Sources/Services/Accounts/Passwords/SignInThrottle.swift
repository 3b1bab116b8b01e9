import Synchronization

/// Slows down whoever guesses: counts failed and costly attempts by account and by address.
///
/// Each subject has an allowance that attempts use up and time restores. Where it is used up, attempts are refused
/// before a password is looked at. Bounded: of many subjects, those are forgotten whose allowance is nearly whole.
package final class SignInThrottle: Sendable {
  /// What is counted.
  package enum Kind: UInt8, Sendable, CaseIterable {
    /// Wrong passwords for an account from one address.
    case accountFromAddress
    /// Wrong passwords for an account, from everywhere.
    case account
    /// Wrong passwords from one address, for any account.
    case address
    /// New accounts from one address.
    case signUp
    /// Mails to one e-mail address.
    case mail
    /// Mails that one address asks for.
    case mailsFromAddress

    /// How many attempts come at once.
    var burst: Double {
      switch self {
      case .accountFromAddress: 10
      case .account, .address, .signUp, .mailsFromAddress: 100
      case .mail: 10
      }
    }

    /// How long a used-up allowance takes to be whole again, in seconds.
    var restoreSeconds: Double {
      switch self {
      case .accountFromAddress, .account, .address: 900
      case .signUp, .mail, .mailsFromAddress: 3600
      }
    }
  }

  /// The most subjects that are remembered; each takes some hundred bytes.
  package static let subjectsMax = 50_000

  private struct Subject: Hashable {
    var kind: Kind
    var name: [UInt8]
  }

  private struct Allowance {
    var used: Double
    var at: Int64
  }

  private let used = Mutex<[Subject: Allowance]>([:])
  private let now: @Sendable () -> Int64

  /// Creates a throttle.
  /// - Parameter now: microseconds of a clock.
  package init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Whether a subject has an attempt left.
  package func allows(_ kind: Kind, _ name: String) -> Bool {
    let now = now()
    return used.withLock { used in
      guard let allowance = used[Subject(kind: kind, name: Array(name.utf8))] else { return true }
      return Self.used(allowance, kind, now) + 1 <= kind.burst
    }
  }

  /// Counts an attempt.
  package func count(_ kind: Kind, _ name: String) {
    let now = now()
    let subject = Subject(kind: kind, name: Array(name.utf8))
    used.withLock { used in
      let before = used[subject].map { Self.used($0, kind, now) } ?? 0
      if used.count >= Self.subjectsMax, used[subject] == nil { Self.forget(&used, now) }
      used[subject] = Allowance(used: min(kind.burst, before + 1), at: now)
    }
  }

  /// Forgets what was counted, such as when the right password came.
  package func reset(_ kind: Kind, _ name: String) {
    _ = used.withLock { $0.removeValue(forKey: Subject(kind: kind, name: Array(name.utf8))) }
  }

  /// What is used up still.
  private static func used(_ allowance: Allowance, _ kind: Kind, _ now: Int64) -> Double {
    let seconds = Double(max(0, now - allowance.at)) / 1_000_000
    return max(0, allowance.used - seconds * kind.burst / kind.restoreSeconds)
  }

  /// Makes room: forgets the half that has used least. Cost: a look at all, once for as many new subjects.
  private static func forget(_ used: inout [Subject: Allowance], _ now: Int64) {
    let shares = used.mapValues { $0 }.map { subject, allowance in
      Self.used(allowance, subject.kind, now) / subject.kind.burst
    }.sorted()
    let middle = shares[shares.count / 2]
    var left = used.count / 2
    used = used.filter { subject, allowance in
      let isHeavy = Self.used(allowance, subject.kind, now) / subject.kind.burst > middle
      if !isHeavy, left > 0 {
        left -= 1
        return false
      }
      return true
    }
  }
}
