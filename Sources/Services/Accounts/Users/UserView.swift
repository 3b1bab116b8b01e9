import KeyValue

/// The users as one snapshot or transaction shows them.
struct UserView {
  let snapshot: any KeyValueSnapshot

  /// The user of that id.
  func user(_ uid: String) throws(StorageError) -> User? {
    guard uid.utf8.count <= UserLimits.uidBytesMax else { return nil }
    return try snapshot.read(AccountsKey(.users).ending(uid).bytes).map { (bytes) throws(StorageError) in
      try decode(bytes)
    }
  }

  /// The user that an entry of a table of lookups leads to.
  func user(at key: [UInt8]) throws(StorageError) -> User? {
    guard let uid = try uid(at: key) else { return nil }
    return try user(uid)
  }

  /// The id that an entry of a table of lookups holds.
  func uid(at key: [UInt8]) throws(StorageError) -> String? {
    // What is longer than any key is stored for nobody.
    guard key.count <= KeyValueLimits.keyBytesMax else { return nil }
    return try snapshot.read(key).map { String(decoding: $0, as: UTF8.self) }
  }

  /// A record from its stored bytes.
  func decode(_ bytes: [UInt8]) throws(StorageError) -> User {
    guard let user = User(stored: bytes) else {
      throw .corruption(path: "the accounts' data file", detail: "a user's record cannot be read")
    }
    return user
  }
}

extension AccountsKey {
  /// The key of an identity at another provider.
  static func identity(_ providerID: String, _ rawID: String) -> [UInt8] {
    AccountsKey(.identities).part(providerID).ending(rawID).bytes
  }
}

extension KeyValueCursor {
  /// Moves to the first entry whose key is not below `key`.
  func seek(atOrAfter key: [UInt8]) throws(StorageError) -> Bool {
    // The library's own call does not pass one type of error on.
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
