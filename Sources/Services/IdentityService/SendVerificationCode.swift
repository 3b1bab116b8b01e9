import Accounts
import DocumentModel

extension AccountsService {
  /// Creates a code for a phone number.
  package struct SendVerificationCode: Sendable {
    package var phoneNumber: String?

    package init(phoneNumber: String?) { self.phoneNumber = phoneNumber }
  }

  /// Creates a code for a phone number and returns it with its session. It works only in emulator mode, where
  /// ``phoneCodes(by:)`` shows the code: the server cannot send text messages.
  ///
  /// - Throws: `AccountError`.
  package func sendVerificationCode(
    _ request: SendVerificationCode, by caller: AccountsCaller
  ) throws -> PhoneCode {
    try requirePhoneSignIn()
    let number = try UserFields.phoneNumber(request.phoneNumber ?? "")
    let bytes = RandomBytes.make(4).reduce(0) { $0 << 8 | UInt32($1) }
    let digits = "\(1_000_000 + bytes % 1_000_000)".dropFirst()
    let code = PhoneCode(phoneNumber: number, sessionInfo: RandomBytes.text(24), code: String(digits))
    phoneCodes.add(code)
    return code
  }

  /// Returns the codes that were made for phone numbers, oldest first. For administrators, and for test suites in
  /// emulator mode.
  ///
  /// - Throws: `PERMISSION_DENIED` for other callers.
  package func phoneCodes(by caller: AccountsCaller) throws -> [PhoneCode] {
    if !caller.isAdmin { try requireEmulator() }
    return phoneCodes.all
  }

  func requirePhoneSignIn() throws {
    guard accounts.mode == .emulator else {
      throw AccountError(.operationNotAllowed, "Sign-in by phone works only in emulator mode.")
    }
  }
}
