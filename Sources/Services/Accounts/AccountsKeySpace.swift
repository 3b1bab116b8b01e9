/// Every table of the accounts' store, in the order of its keys. The numbers are on disk: never reuse or renumber one.
///
/// A storage key is the table's number followed by the parts named below; see ``AccountsKey``. Values are JSON objects
/// unless a table says otherwise, so that a later version can add members.
package enum AccountsTable: UInt8, CaseIterable, Sendable {
  /// name → what the store knows of itself: `format` → the number of this layout, in text; `secret` → 32 random bytes
  /// that sign access tokens.
  case meta = 0x01

  // MARK: Tokens and keys

  /// key id → ``SigningKeys``' private key, its purpose and the time it is used from.
  case signingKeys = 0x10
  /// SHA-256 of a refresh token → the session it continues.
  case refreshTokens = 0x11
  /// uid, seconds of issue, SHA-256 of a refresh token → nothing. Finds the sessions of a user, oldest first.
  case refreshTokensOfUser = 0x12
  /// uid → ``UserState``: what stands against the tokens of a user. Most users have none.
  case userStates = 0x13
  /// key id → ``ServiceKey``: the public key of a tool that is admin.
  case serviceKeys = 0x18

  // MARK: Users

  /// uid → the ``User`` as the API's JSON.
  case users = 0x20
  /// E-mail address → uid.
  case emails = 0x21
  /// Telephone number → uid.
  case phoneNumbers = 0x22
  /// Provider, id at the provider → uid.
  case identities = 0x23
  /// Code of a mail → ``ActionCode``.
  case actionCodes = 0x24
  /// (nothing) → ``AccountsSettings``.
  case settings = 0x25
  /// uid, code of a mail → nothing. Finds the codes of a user.
  case actionCodesOfUser = 0x26
}

/// A storage key of the accounts' store under construction.
package struct AccountsKey: Sendable {
  /// The bytes so far.
  package private(set) var bytes: [UInt8]

  /// Starts a key of a table.
  package init(_ table: AccountsTable) { bytes = [table.rawValue] }

  /// Appends text that ends the key: its UTF-8 bytes, so that rows lie in the order of their texts.
  package consuming func ending(_ text: String) -> AccountsKey { ending(text.utf8) }

  /// Appends bytes that end the key.
  package consuming func ending(_ part: some Sequence<UInt8>) -> AccountsKey {
    bytes.append(contentsOf: part)
    return self
  }

  /// Appends text that something follows: its length in two bytes, then its UTF-8 bytes. Texts are at most 65,535
  /// bytes long; what is beyond is cut, and never reaches a store, whose keys are shorter.
  package consuming func part(_ text: String) -> AccountsKey {
    let part = text.utf8.prefix(Int(UInt16.max))
    bytes.append(UInt8(truncatingIfNeeded: part.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: part.count))
    bytes.append(contentsOf: part)
    return self
  }

  /// Appends a number, eight bytes, so that rows lie in the order of their numbers; those below 0 count as 0.
  package consuming func number(_ number: Int64) -> AccountsKey {
    let bits = UInt64(max(0, number)).bigEndian
    withUnsafeBytes(of: bits) { bytes.append(contentsOf: $0) }
    return self
  }

  /// The lowest key above all that begin with this one.
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
