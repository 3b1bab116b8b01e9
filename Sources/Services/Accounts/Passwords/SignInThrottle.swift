import Synchronization

/// Limits guesses of passwords, new accounts and mails, per account and per address.
///
/// Each subject has an allowance that attempts consume and time restores. If it is exhausted, further attempts are
/// rejected before the password is checked. Memory is bounded: if there are too many subjects, those with the most
/// attempts left are forgotten.
package final class SignInThrottle: Sendable {
  /// The kinds of attempts that are counted.
  package enum Kind: UInt8, Sendable, CaseIterable {
    /// Wrong passwords for an account from one address.
    case accountFromAddress
    /// Wrong passwords for an account, from any address.
    case account
    /// Wrong passwords from one address, for any account.
    case address
    /// New accounts from one address.
    case signUp
    /// Mails sent to one e-mail address.
    case mail
    /// Mails requested from one address.
    case mailsFromAddress

    /// The number of attempts that a full allowance permits.
    var burst: Double {
      switch self {
      case .accountFromAddress: 10
      case .account, .address, .signUp, .mailsFromAddress: 100
      case .mail: 10
      }
    }

    /// The time in which an exhausted allowance is fully restored, in seconds.
    var restoreSeconds: Double {
      switch self {
      case .accountFromAddress, .account, .address: 900
      case .signUp, .mail, .mailsFromAddress: 3600
      }
    }
  }

  /// The most subjects that are remembered. Each takes about a hundred bytes.
  package static let subjectsMax = 50_000

  private struct Subject: Hashable {
    var kind: Kind
    var name: [UInt8]
  }

  private struct Allowance {
    /// The number of attempts consumed at the time ``at``.
    var consumed: Double
    /// Microseconds of `now`.
    var at: Int64
  }

  private let allowances = Mutex<[Subject: Allowance]>([:])
  private let now: @Sendable () -> Int64

  /// Creates a throttle.
  /// - Parameter now: returns the current time in microseconds.
  package init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Returns whether a subject has an attempt left.
  package func allows(_ kind: Kind, _ name: String) -> Bool {
    let now = now()
    return allowances.withLock { allowances in
      guard let allowance = allowances[Subject(kind: kind, name: Array(name.utf8))] else { return true }
      return Self.consumedNow(allowance, kind, now) + 1 <= kind.burst
    }
  }

  /// Counts an attempt.
  package func count(_ kind: Kind, _ name: String) {
    let now = now()
    let subject = Subject(kind: kind, name: Array(name.utf8))
    allowances.withLock { allowances in
      let before = allowances[subject].map { Self.consumedNow($0, kind, now) } ?? 0
      if allowances.count >= Self.subjectsMax, allowances[subject] == nil { Self.forget(&allowances, now) }
      allowances[subject] = Allowance(consumed: min(kind.burst, before + 1), at: now)
    }
  }

  /// Forgets the attempts of a subject, for example after the correct password.
  package func reset(_ kind: Kind, _ name: String) {
    _ = allowances.withLock { $0.removeValue(forKey: Subject(kind: kind, name: Array(name.utf8))) }
  }

  /// The part of an allowance that is still consumed.
  private static func consumedNow(_ allowance: Allowance, _ kind: Kind, _ now: Int64) -> Double {
    let seconds = Double(max(0, now - allowance.at)) / 1_000_000
    return max(0, allowance.consumed - seconds * kind.burst / kind.restoreSeconds)
  }

  /// Forgets the half of the subjects that has consumed least. Cost: a sort of all, once per that many new
  /// subjects.
  private static func forget(_ allowances: inout [Subject: Allowance], _ now: Int64) {
    let fractions = allowances.map { subject, allowance in
      Self.consumedNow(allowance, subject.kind, now) / subject.kind.burst
    }.sorted()
    let middle = fractions[fractions.count / 2]
    var left = allowances.count / 2
    allowances = allowances.filter { subject, allowance in
      let isHeavy = Self.consumedNow(allowance, subject.kind, now) / subject.kind.burst > middle
      if !isHeavy, left > 0 {
        left -= 1
        return false
      }
      return true
    }
  }
}
