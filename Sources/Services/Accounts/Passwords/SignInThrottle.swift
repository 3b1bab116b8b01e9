import Synchronization

/// Limits guesses of passwords, new accounts and mails, per account and per place.
///
/// Each subject has an allowance that attempts consume and time restores. If it is exhausted, further attempts are
/// rejected before the password is checked. Memory is bounded: if there are too many subjects, those with the most
/// attempts left are forgotten.
package final class SignInThrottle: Sendable {
  /// The kinds of attempts that are counted.
  package enum Kind: UInt8, Sendable, CaseIterable {
    /// Wrong passwords for an account from one place.
    case accountFromPlace
    /// Wrong passwords for an account from places that are not known to belong to its user.
    case strangers
    /// Wrong passwords for an account from one such place, while the account is under attack.
    case stranger
    /// Wrong passwords from one place, for any account.
    case place
    /// Lines of the log about rejected attempts of one kind.
    case logLine
    /// New accounts from one place.
    case signUp
    /// Mails sent to one e-mail address.
    case mail
    /// Mails requested from one place.
    case mailsFromPlace
    /// Returns from other providers to one place, except those that signed a user in.
    case providerReturn

    /// The number of attempts that a full allowance permits.
    var burst: Double {
      switch self {
      case .accountFromPlace: Double(guessesFromPlaceMax)
      case .strangers: Double(strangerGuessesMax)
      case .stranger: Double(guessesUnderAttackMax)
      case .place: Double(guessesOfPlaceMax)
      case .signUp, .mailsFromPlace: 100
      case .mail: 10
      case .logLine: 1
      case .providerReturn: Double(failedReturnsMax)
      }
    }

    /// The time in which an exhausted allowance is fully restored, in seconds.
    var restoreSeconds: Double {
      switch self {
      case .accountFromPlace, .strangers, .place, .providerReturn: Double(guessesRestoreSeconds)
      case .stranger: Double(underAttackRestoreSeconds)
      case .signUp, .mail, .mailsFromPlace: 3600
      case .logLine: 60
      }
    }
  }

  /// Wrong passwords for one account from one place, an IPv4 address or an IPv6 network of 64 bits. A further sign-in
  /// is TOO_MANY_ATTEMPTS_TRY_LATER, as for the following limits.
  package static let guessesFromPlaceMax = 10
  /// Wrong passwords from one place, for any account.
  package static let guessesOfPlaceMax = 100
  /// Wrong passwords for one account from unknown places at which the account counts as under attack. A place is known
  /// if the account's user signed in there; see `KnownPlaces`.
  package static let guessesUntilAttackMax = 100
  /// Wrong passwords for an account under attack from one unknown place.
  package static let guessesUnderAttackMax = 2
  /// Wrong passwords for one account from all unknown places together. Beyond it only known places can sign in with the
  /// password.
  package static let strangerGuessesMax = 300
  /// Returns from the pages of other providers to one place that do not sign a user in, because the code is wrong or the
  /// provider fails. A further return gets an error page, and the server does not ask the provider.
  package static let failedReturnsMax = 30
  /// The time after which the exhausted allowances for wrong passwords and failed returns are full again, in seconds.
  package static let guessesRestoreSeconds = 900
  /// The time after which the allowance of an unknown place is full again while the account is under attack, in
  /// seconds.
  package static let underAttackRestoreSeconds = 1800

  /// The accounts and places whose attempts are remembered. Each takes about a hundred bytes. Beyond it, those with the
  /// most attempts left are forgotten.
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
  /// The throttle that counts wrong passwords by place for several projects, or `nil` if this one does.
  private let places: SignInThrottle?

  /// Creates a throttle.
  /// - Parameter now: returns the current time in microseconds.
  /// - Parameter places: the throttle that counts ``Kind/place``, which several projects share, or `nil`.
  package init(now: @escaping @Sendable () -> Int64, places: SignInThrottle? = nil) {
    self.now = now
    self.places = places
  }

  /// The throttle that counts a kind of attempts.
  private func counter(of kind: Kind) -> SignInThrottle { kind == .place ? places ?? self : self }

  /// Returns whether a subject has an attempt left.
  package func allows(_ kind: Kind, _ name: String) -> Bool {
    let now = now()
    return counter(of: kind).allowances.withLock { allowances in
      guard let allowance = allowances[Subject(kind: kind, name: Array(name.utf8))] else { return true }
      return Self.consumedNow(allowance, kind, now) + 1 <= kind.burst
    }
  }

  /// Whether an account is under attack: strangers have tried too many wrong passwords.
  package func isUnderAttack(_ account: String) -> Bool {
    let now = now()
    return allowances.withLock { allowances in
      guard let allowance = allowances[Subject(kind: .strangers, name: Array(account.utf8))] else { return false }
      return Self.consumedNow(allowance, .strangers, now) + 1 > Double(Self.guessesUntilAttackMax)
    }
  }

  /// Counts an attempt.
  package func count(_ kind: Kind, _ name: String) {
    let now = now()
    let subject = Subject(kind: kind, name: Array(name.utf8))
    counter(of: kind).allowances.withLock { allowances in
      let before = allowances[subject].map { Self.consumedNow($0, kind, now) } ?? 0
      if allowances.count >= Self.subjectsMax, allowances[subject] == nil { Self.forget(&allowances, now) }
      allowances[subject] = Allowance(consumed: min(kind.burst, before + 1), at: now)
    }
  }

  /// Counts an attempt, or returns false if the subject has none left.
  package func take(_ kind: Kind, _ name: String) -> Bool {
    guard allows(kind, name) else { return false }
    count(kind, name)
    return true
  }

  /// Gives an attempt back to a subject, because it was not a wrong one.
  package func giveBack(_ kind: Kind, _ name: String) {
    let now = now()
    let subject = Subject(kind: kind, name: Array(name.utf8))
    counter(of: kind).allowances.withLock { allowances in
      guard let allowance = allowances[subject] else { return }
      let consumed = Self.consumedNow(allowance, kind, now) - 1
      allowances[subject] = consumed > 0 ? Allowance(consumed: consumed, at: now) : nil
    }
  }

  /// Forgets the attempts of a subject, for example after the correct password.
  package func reset(_ kind: Kind, _ name: String) {
    _ = counter(of: kind).allowances.withLock { $0.removeValue(forKey: Subject(kind: kind, name: Array(name.utf8))) }
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

/// The limits of wrong passwords by place, which all projects of a server share. Otherwise somebody could guess again
/// under each project.
package struct PlaceThrottles: Sendable {
  /// For the users of apps.
  package let users: SignInThrottle
  /// For operators. They are counted apart, so that the users of an app behind the same address do not lock them out.
  package let operators: SignInThrottle

  /// Creates the limits of one server.
  /// - Parameter now: returns the current time in microseconds.
  package init(now: @escaping @Sendable () -> Int64) {
    (users, operators) = (SignInThrottle(now: now), SignInThrottle(now: now))
  }
}
