/// What may stand in the fields of an account, and the form they are kept in.
package enum UserFields {
  /// An e-mail address as it is kept and looked up: lower case.
  /// - Throws: `INVALID_EMAIL` unless there is one `@` with something on both sides, and nothing that could break out of
  ///   the header of a mail.
  package static func email(_ text: String) throws(AccountError) -> String {
    let lower = text.lowercased()
    let parts = lower.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }), lower.utf8.count <= UserLimits.emailBytesMax,
      lower.utf8.allSatisfy({ byte in
        byte > 0x20 && byte != 0x7F && !#"<>,;"()\"#.utf8.contains(byte)
      })
    else { throw AccountError(.invalidEmail) }
    return lower
  }

  /// A telephone number: `+` and up to 15 digits; blanks and punctuation people write between them are left out.
  /// - Throws: `INVALID_PHONE_NUMBER`.
  package static func phoneNumber(_ text: String) throws(AccountError) -> String {
    let digits = text.utf8.dropFirst().filter { !" -().".utf8.contains($0) }
    guard text.utf8.first == UInt8(ascii: "+"), (4...15).contains(digits.count),
      digits.allSatisfy({ (0x30...0x39).contains($0) })
    else { throw AccountError(.invalidPhoneNumber, "Invalid format.") }
    return "+" + String(decoding: digits, as: UTF8.self)
  }

  /// The id of a user.
  /// - Throws: `INVALID_LOCAL_ID` unless it has 1 to 128 bytes.
  package static func uid(_ text: String) throws(AccountError) -> String {
    guard (1...UserLimits.uidBytesMax).contains(text.utf8.count), !text.utf8.contains(0) else {
      throw AccountError(.invalidLocalID)
    }
    return text
  }

  /// A password that is to be set.
  /// - Throws: `WEAK_PASSWORD` where it is too short, `INVALID_PASSWORD` where it is longer than anybody hashes.
  package static func newPassword(_ text: String) throws(AccountError) -> String {
    guard text.unicodeScalars.count >= UserLimits.passwordCharactersMin else {
      throw AccountError(
        .weakPassword, "Password should be at least \(UserLimits.passwordCharactersMin) characters")
    }
    guard text.utf8.count <= UserLimits.passwordBytesMax else {
      throw AccountError(.invalidPassword, "Password is longer than \(UserLimits.passwordBytesMax) bytes.")
    }
    return text
  }

  /// Any other text, such as a name or the address of a picture.
  /// - Throws: `INVALID_ARGUMENT` naming the field where it is too long.
  package static func text(_ text: String, _ field: StaticString) throws(AccountError) -> String {
    guard text.utf8.count <= UserLimits.textBytesMax else {
      throw AccountError(.invalidArgument, "\(field) is longer than \(UserLimits.textBytesMax) bytes")
    }
    return text
  }

  /// Custom claims as text; `nil` where there are none.
  /// - Throws: `CLAIMS_TOO_LARGE`, `INVALID_CLAIMS` unless it is a JSON object, `FORBIDDEN_CLAIM` for a reserved name.
  package static func customClaims(_ text: String) throws(AccountError) -> String? {
    guard text.unicodeScalars.count <= UserLimits.claimsCharactersMax else { throw AccountError(.claimsTooLarge) }
    if text.isEmpty { return nil }
    guard let members = (try? AccountsJSON(parsing: Array(text.utf8)))?.members else {
      throw AccountError(.invalidClaims)
    }
    for member in members where ReservedClaims.names.contains(where: { $0.utf8.elementsEqual(member.name.utf8) }) {
      throw AccountError(.forbiddenClaim, member.name)
    }
    return members.isEmpty ? nil : text
  }
}
