/// The caller that began a transaction. Only this caller can use its ID.
package struct TransactionOwner: Sendable {
  /// A letter for the kind of caller, and the ID of a user.
  let bytes: [UInt8]

  /// Administrators, who share their transactions.
  package static let administrator = TransactionOwner(bytes: [UInt8(ascii: "a")])
  /// Callers without credentials, who share their transactions.
  package static let unauthenticated = TransactionOwner(bytes: [UInt8(ascii: "n")])

  /// Returns the owner of the transactions of a signed-in user, with any token of this user.
  package static func user(_ uid: String) -> TransactionOwner {
    TransactionOwner(bytes: [UInt8(ascii: "u")] + uid.utf8)
  }
}
