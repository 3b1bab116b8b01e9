import Accounts
import Synchronization

/// The codes that were sent to phone numbers. They exist only in memory.
final class PhoneCodes: Sendable {
  /// The largest number of codes in memory. Above it the oldest is dropped.
  private static let entriesMax = 1000
  private let entries = Mutex<[PhoneCode]>([])

  /// All codes, oldest first.
  var all: [PhoneCode] { entries.withLock { $0 } }

  func add(_ entry: PhoneCode) {
    entries.withLock { entries in
      if entries.count >= Self.entriesMax { entries.removeFirst() }
      entries.append(entry)
    }
  }

  /// Removes a code and returns its phone number, if the session exists and the code is right.
  func take(_ sessionInfo: String, code: String) -> Result<String, AccountError> {
    entries.withLock { entries in
      guard let index = entries.firstIndex(where: { $0.sessionInfo == sessionInfo }) else {
        return .failure(AccountError(.invalidSessionInfo))
      }
      guard entries[index].code == code else { return .failure(AccountError(.invalidCode)) }
      return .success(entries.remove(at: index).phoneNumber)
    }
  }
}

/// A code with its phone number and session.
package struct PhoneCode: Sendable {
  package var phoneNumber: String
  package var sessionInfo: String
  package var code: String
}
