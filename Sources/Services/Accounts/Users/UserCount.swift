import KeyValue

/// The number of users in a store of accounts. It is stored, so that no start and no request has to count them.
enum UserCount {
  private static var key: [UInt8] { AccountsKey(.meta).ending("users").bytes }

  /// Returns the number of users. Cost: one lookup, or one step for each user if no release has stored the number.
  /// - Throws: ``StorageError`` if the read fails.
  static func read(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> Int {
    if let stored = try snapshot.read(key), let count = Int(String(decoding: stored, as: UTF8.self)), count >= 0 {
      return count
    }
    return try snapshot.count(AccountsKey(.users))
  }

  /// Stores the number of users.
  /// - Throws: ``StorageError`` if the write fails.
  static func store(_ count: Int, _ transaction: any KeyValueTransaction) throws(StorageError) {
    try transaction.put(key, Array(String(max(0, count)).utf8))
  }
}
