import Accounts
import Synchronization

/// The codes that were sent to phone numbers. They exist only in memory.
final class PhoneCodes: Sendable {
  /// The codes in memory. Above it the oldest is dropped.
  static let phoneCodesMax = 1000
  /// The lifetime of a code for a telephone number, in seconds. A sign-in with an older code is SESSION_EXPIRED.
  /// Source: Hearth's own limit.
  static let phoneCodeSeconds: Int64 = 600
  private let entries = Mutex<[(code: PhoneCode, createdSeconds: Int64)]>([])
  /// Returns the current time, in seconds.
  private let now: @Sendable () -> Int64

  /// Creates an empty table. `now` returns the current time, in seconds.
  init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// All codes that are still valid, oldest first.
  var all: [PhoneCode] {
    let now = now()
    return entries.withLock { $0.filter { !Self.isOver($0.createdSeconds, now) }.map(\.code) }
  }

  func add(_ code: PhoneCode) {
    let now = now()
    entries.withLock { entries in
      if entries.count >= Self.phoneCodesMax { entries.removeFirst() }
      entries.append((code, now))
    }
  }

  /// Whether the lifetime of a code is over. A clock that was set back makes no code younger than new.
  private static func isOver(_ createdSeconds: Int64, _ now: Int64) -> Bool {
    now - createdSeconds >= phoneCodeSeconds
  }

  /// Removes a code and returns its phone number, if the session exists, is not over, and the code is right.
  func take(_ sessionInfo: String, code: String) -> Result<String, AccountError> {
    let now = now()
    return entries.withLock { entries in
      guard let index = entries.firstIndex(where: { $0.code.sessionInfo == sessionInfo }) else {
        return .failure(AccountError(.invalidSessionInfo))
      }
      guard !Self.isOver(entries[index].createdSeconds, now) else {
        entries.remove(at: index)
        return .failure(AccountError(.sessionExpired))
      }
      guard entries[index].code.code == code else { return .failure(AccountError(.invalidCode)) }
      return .success(entries.remove(at: index).code.phoneNumber)
    }
  }
}

/// A code with its phone number and session.
package struct PhoneCode: Sendable {
  package var phoneNumber: String
  package var sessionInfo: String
  package var code: String
}
