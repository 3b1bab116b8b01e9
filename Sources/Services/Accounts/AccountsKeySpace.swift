/// The tables of the account store, in key order. The numbers are on disk: never reuse or renumber one.
///
/// A storage key is the table's number followed by the parts named below; see ``AccountsKey``. Values are JSON
/// objects unless a table says otherwise, so a later version can add members.
package enum AccountsTable: UInt8, CaseIterable, Sendable {
  /// name → metadata of the store: `format` → the layout number as text; `secret` → 32 random bytes that sign
  /// access tokens; `users` → the number of users as text.
  case meta = 0x01

  // MARK: Tokens and keys

  /// key ID → a private key of ``SigningKeys``, its purpose and the time of its first use.
  case signingKeys = 0x10
  /// SHA-256 of a refresh token → the session it continues.
  case refreshTokens = 0x11
  /// uid, issue time in seconds, SHA-256 of a refresh token → empty. Finds the sessions of a user, oldest first.
  case refreshTokensOfUser = 0x12
  /// uid → ``UserState``, which invalidates tokens of a user. Most users have no row.
  case userStates = 0x13
  /// key ID → ``ServiceKey``: the public key of a program with admin access.
  case serviceKeys = 0x18
  /// Name → ``Operator``.
  case operators = 0x19

  // MARK: Users

  /// uid → the ``User`` as the API's JSON.
  case users = 0x20
  /// E-mail address → uid.
  case emails = 0x21
  /// Telephone number → uid.
  case phoneNumbers = 0x22
  /// Provider ID, the user's ID at the provider → uid.
  case identities = 0x23
  /// Mailed code → ``ActionCode``.
  case actionCodes = 0x24
  /// (empty) → ``AccountsSettings``.
  case settings = 0x25
  /// uid, mailed code → empty. Finds the codes of a user.
  case actionCodesOfUser = 0x26
}

/// A builder of storage keys of the account store.
package struct AccountsKey: Sendable {
  package private(set) var bytes: [UInt8]

  /// Starts a key of a table.
  package init(_ table: AccountsTable) { bytes = [table.rawValue] }

  /// Appends text as the last part of the key: its UTF-8 bytes, so rows are sorted by the text.
  package consuming func ending(_ text: String) -> AccountsKey { ending(text.utf8) }

  /// Appends bytes as the last part of the key.
  package consuming func ending(_ part: some Sequence<UInt8>) -> AccountsKey {
    bytes.append(contentsOf: part)
    return self
  }

  /// Appends text that another part follows: its length in two bytes, then its UTF-8 bytes. Text beyond 65,535
  /// bytes is cut off; store keys are shorter than that anyway.
  package consuming func part(_ text: String) -> AccountsKey {
    let part = text.utf8.prefix(Int(UInt16.max))
    bytes.append(UInt8(truncatingIfNeeded: part.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: part.count))
    bytes.append(contentsOf: part)
    return self
  }

  /// Appends a number as eight bytes, so rows are sorted by the number. A negative number becomes 0.
  package consuming func number(_ number: Int64) -> AccountsKey {
    let bits = UInt64(max(0, number)).bigEndian
    withUnsafeBytes(of: bits) { bytes.append(contentsOf: $0) }
    return self
  }

  /// The lowest key after all keys that begin with this one.
  package var end: [UInt8] {
    var end = bytes
    while let last = end.popLast() {
      if last < UInt8.max {
        end.append(last + 1)
        break
      }
    }
    return end
  }
}
