import WireFormat

/// The validation of account fields, and the form in which they are stored.
package enum UserFields {
  /// Returns an e-mail address in the form in which it is stored and looked up: lower case.
  /// - Throws: ``AccountError`` `INVALID_EMAIL` unless the text contains one `@` with text on both sides, and no
  ///   character that could break out of a mail header.
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

  /// Returns a telephone number in its stored form: `+` and 4 to 15 digits, without spaces and punctuation.
  /// - Throws: ``AccountError`` `INVALID_PHONE_NUMBER` if the text is not a telephone number.
  package static func phoneNumber(_ text: String) throws(AccountError) -> String {
    let digits = text.utf8.dropFirst().filter { !" -().".utf8.contains($0) }
    guard text.utf8.first == UInt8(ascii: "+"), (4...15).contains(digits.count),
      digits.allSatisfy({ (0x30...0x39).contains($0) })
    else { throw AccountError(.invalidPhoneNumber, "Invalid format.") }
    return "+" + String(decoding: digits, as: UTF8.self)
  }

  /// Returns the ID of a user after validating it.
  /// - Throws: ``AccountError`` `INVALID_LOCAL_ID` unless it has 1 to 128 bytes and no zero byte.
  package static func uid(_ text: String) throws(AccountError) -> String {
    guard (1...UserLimits.uidBytesMax).contains(text.utf8.count), !text.utf8.contains(0) else {
      throw AccountError(.invalidLocalID)
    }
    return text
  }

  /// Returns a new password after validating it.
  /// - Throws: ``AccountError`` `WEAK_PASSWORD` if it is too short, `INVALID_PASSWORD` if it is too long to hash.
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

  /// Returns any other text, such as a name or the URL of a picture, after validating it.
  /// - Throws: ``AccountError`` `INVALID_ARGUMENT` with the field's name if the text is too long.
  package static func text(_ text: String, _ field: StaticString) throws(AccountError) -> String {
    guard text.utf8.count <= UserLimits.textBytesMax else {
      throw AccountError(.invalidArgument, "\(field) is longer than \(UserLimits.textBytesMax) bytes")
    }
    return text
  }

  /// Returns custom claims as text, or `nil` if the text is empty. The object `{}` is kept: clients that have removed
  /// all claims read it again.
  /// - Throws: ``AccountError`` `CLAIMS_TOO_LARGE`; `INVALID_CLAIMS` if the text is not a JSON object;
  ///   `FORBIDDEN_CLAIM` if it contains a reserved name.
  package static func customClaims(_ text: String) throws(AccountError) -> String? {
    guard text.unicodeScalars.count <= UserLimits.claimsCharactersMax else { throw AccountError(.claimsTooLarge) }
    if text.isEmpty { return nil }
    guard let members = (try? JSONTree(parsing: Array(text.utf8)))?.members else {
      throw AccountError(.invalidClaims)
    }
    for member in members where ReservedClaims.names.contains(where: { $0.utf8.elementsEqual(member.name.utf8) }) {
      throw AccountError(.forbiddenClaim, member.name)
    }
    return text
  }
}
