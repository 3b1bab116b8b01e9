import KeyValue

/// The users in one snapshot or transaction.
struct UserView {
  let snapshot: any KeyValueSnapshot

  /// Returns the user with an ID, or `nil` if it does not exist.
  func user(_ uid: String) throws(StorageError) -> User? {
    guard uid.utf8.count <= UserLimits.uidBytesMax else { return nil }
    return try snapshot.read(AccountsKey(.users).ending(uid).bytes).map { (bytes) throws(StorageError) in
      try decode(bytes)
    }
  }

  /// Returns the user of a lookup entry, or `nil` if the entry does not exist.
  func user(at key: [UInt8]) throws(StorageError) -> User? {
    guard let uid = try uid(at: key) else { return nil }
    return try user(uid)
  }

  /// Returns the user ID in a lookup entry, or `nil` if the entry does not exist.
  func uid(at key: [UInt8]) throws(StorageError) -> String? {
    // A text longer than any key cannot be stored.
    guard key.count <= KeyValueLimits.keyBytesMax else { return nil }
    return try snapshot.read(key).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Decodes a stored record.
  func decode(_ bytes: [UInt8]) throws(StorageError) -> User {
    guard let user = User(stored: bytes) else {
      throw .corruption(path: "the account store", detail: "the record of a user is not valid")
    }
    return user
  }
}

extension AccountsKey {
  /// Returns the key of an identity at another provider.
  static func identity(_ providerID: String, _ rawID: String) -> [UInt8] {
    AccountsKey(.identities).part(providerID).ending(rawID).bytes
  }
}

extension KeyValueCursor {
  /// Moves to the first entry whose key is not lower than `key`. Returns `false` if none exists.
  func seek(atOrAfter key: [UInt8]) throws(StorageError) -> Bool {
    // `withUnsafeBytes` does not support typed throws.
    try key.withUnsafeBytes { key in Result { () throws(StorageError) in try seek(atOrAfter: key) } }.get()
  }
}

extension KeyValueTransaction {
  /// Removes every entry whose key begins with `prefix`.
  func removeAll(_ prefix: AccountsKey) throws(StorageError) {
    let upper = prefix.end
    try prefix.bytes.withUnsafeBytes { lower in
      upper.withUnsafeBytes { upper in
        Result { () throws(StorageError) in _ = try removeRange(from: lower, to: upper) }
      }
    }.get()
  }
}
