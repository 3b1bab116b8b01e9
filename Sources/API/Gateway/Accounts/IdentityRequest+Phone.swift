import Accounts
import Synchronization
import WireFormat

/// Codes that were sent to telephones, in memory: few, and for minutes.
final class PhoneCodes: Sendable {
  /// A code, and what it is for.
  struct Entry: Sendable {
    var phoneNumber: String
    var sessionInfo: String
    var code: String
  }

  /// The most that are remembered; the oldest go first.
  private static let entriesMax = 1000
  private let entries = Mutex<[Entry]>([])

  /// All codes, the oldest first.
  var all: [Entry] { entries.withLock { $0 } }

  func add(_ entry: Entry) {
    entries.withLock { entries in
      if entries.count >= Self.entriesMax { entries.removeFirst() }
      entries.append(entry)
    }
  }

  /// Takes the number that a session is about, if the code is right.
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

/// Sign-in by telephone: in emulator mode only, where the control endpoint shows the codes. Nothing here sends messages.
extension IdentityRequest {
  func sendVerificationCode() throws -> Answer {
    try requireEmulator()
    let number = try UserFields.phoneNumber(text("phoneNumber") ?? "")
    let bytes = RandomBytes.make(4).reduce(0) { $0 << 8 | UInt32($1) }
    let digits = "\(1_000_000 + bytes % 1_000_000)".dropFirst()
    let entry = PhoneCodes.Entry(phoneNumber: number, sessionInfo: RandomBytes.text(24), code: String(digits))
    toolkit.phoneCodes.add(entry)
    return answer(nil) { $0.text("sessionInfo", entry.sessionInfo) }
  }

  func signInWithPhoneNumber() throws -> Answer {
    try requireEmulator()
    guard let session = text("sessionInfo"), let code = text("code") else {
      throw AccountError(text("sessionInfo") == nil ? .invalidSessionInfo : .invalidCode)
    }
    let linked = try text("idToken").map { _ in try owner().user.uid }
    let number = try toolkit.phoneCodes.take(session, code: code).get()
    let now = accounts.nowMilliseconds
    var isNew = false
    let outcome = try accounts.signIn(provider: "phone") { users in
      if let linked { return linked }
      if let user = try users.user(phoneNumber: number) { return user.uid }
      isNew = true
      let user = User(uid: UserStore.makeUID(), createdAt: now)
      try users.insert(user)
      return user.uid
    } change: { user in
      user.phoneNumber = number
    }
    audit(isNew ? .created : .signedIn, outcome.user.uid, by: "phone")
    return answer(nil) { json in
      json.text("localId", outcome.user.uid)
      json.text("phoneNumber", number)
      json.truth("isNewUser", isNew)
      json.members(outcome)
    }
  }

  func emulatorVerificationCodes() -> Answer {
    answer(nil) { json in
      json.key("verificationCodes")
      json.beginArray()
      for entry in toolkit.phoneCodes.all {
        json.beginObject()
        json.text("phoneNumber", entry.phoneNumber)
        json.text("sessionInfo", entry.sessionInfo)
        json.text("code", entry.code)
        json.endObject()
      }
      json.endArray()
    }
  }

  private func requireEmulator() throws {
    guard accounts.mode == .emulator else {
      throw AccountError(.operationNotAllowed, "Nothing here sends messages to telephones.")
    }
  }
}
