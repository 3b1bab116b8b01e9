import Accounts
import DocumentModel
import Synchronization
import WireFormat

/// The codes that were sent to phone numbers. They exist only in memory.
final class PhoneCodes: Sendable {
  /// A code with its phone number and session.
  struct Entry: Sendable {
    var phoneNumber: String
    var sessionInfo: String
    var code: String
  }

  /// The largest number of codes in memory. Above it the oldest is dropped.
  private static let entriesMax = 1000
  private let entries = Mutex<[Entry]>([])

  /// All codes, oldest first.
  var all: [Entry] { entries.withLock { $0 } }

  func add(_ entry: Entry) {
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

/// Sign-in by phone. It works only in emulator mode, where the control endpoint shows the codes: the server cannot
/// send text messages.
extension IdentityRequest {
  func sendVerificationCode() throws -> Response {
    try requireEmulator()
    let number = try UserFields.phoneNumber(text("phoneNumber") ?? "")
    let bytes = RandomBytes.make(4).reduce(0) { $0 << 8 | UInt32($1) }
    let digits = "\(1_000_000 + bytes % 1_000_000)".dropFirst()
    let entry = PhoneCodes.Entry(phoneNumber: number, sessionInfo: RandomBytes.text(24), code: String(digits))
    toolkit.phoneCodes.add(entry)
    return response(nil) { $0.text("sessionInfo", entry.sessionInfo) }
  }

  func signInWithPhoneNumber() throws -> Response {
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
    return response(nil) { json in
      json.text("localId", outcome.user.uid)
      json.text("phoneNumber", number)
      json.boolean("isNewUser", isNew)
      json.members(outcome)
    }
  }

  func emulatorVerificationCodes() -> Response {
    response(nil) { json in
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
      throw AccountError(.operationNotAllowed, "Sign-in by phone works only in emulator mode.")
    }
  }
}
