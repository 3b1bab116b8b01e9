import Glibc
import Synchronization

/// The places from which the users of accounts have signed in lately. Guesses from other places must not lock a user
/// out of these.
///
/// A place is an IPv4 address, or the first 64 bits of an IPv6 address, which one customer usually has. Places are kept
/// in memory only, so after a restart no place is known until its user signs in again. Memory is bounded: an account
/// has ``placesPerAccountMax`` places, and the accounts that were not used for the longest time are forgotten.
package final class KnownPlaces: Sendable {
  /// The known places of one account. Beyond it the least recently used place is forgotten.
  package static let placesPerAccountMax = 4
  /// The accounts with known places. Each takes about 150 bytes. Beyond it, the half that was not used for the longest
  /// time is forgotten.
  package static let accountsMax = 50_000
  /// The time for which a place remains known without use, in seconds: thirty days.
  package static let placeSeconds: Int64 = 30 * 86_400

  private struct Place {
    /// The hash of the text, with the seed of this process.
    var hash: Int
    /// Microseconds of `now`.
    var usedAt: Int64
  }

  /// By the hash of the account's email address.
  private let places = Mutex<[Int: [Place]]>([:])
  private let now: @Sendable () -> Int64

  /// Creates an empty table.
  /// - Parameter now: returns the current time in microseconds.
  package init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Returns the place of a client's address. A text that is not an address is a place of its own.
  package static func place(of address: String) -> String {
    var bytes = in6_addr()
    guard inet_pton(AF_INET6, address, &bytes) == 1 else { return address }
    return withUnsafeBytes(of: &bytes) { bytes in
      // ::ffff:a.b.c.d is an IPv4 address.
      if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
        return bytes[12...].map(String.init).joined(separator: ".")
      }
      return bytes[..<8].map { String($0, radix: 16) }.joined(separator: ":") + "/64"
    }
  }

  /// Whether the user of an account has signed in from a place lately.
  package func contains(_ place: String, of account: String) -> Bool {
    let limit = now() - Self.placeSeconds * 1_000_000
    return places.withLock { places in
      places[account.hashValue]?.contains { $0.hash == place.hashValue && $0.usedAt > limit } ?? false
    }
  }

  /// Records a sign-in.
  package func note(_ place: String, of account: String) {
    let now = now()
    let (account, hash) = (account.hashValue, place.hashValue)
    places.withLock { places in
      if places.count >= Self.accountsMax, places[account] == nil { Self.forget(&places) }
      var own = (places[account] ?? []).filter { $0.hash != hash }
      if own.count >= Self.placesPerAccountMax { own.removeFirst() }
      own.append(Place(hash: hash, usedAt: now))
      places[account] = own
    }
  }

  /// Forgets the places of an account, for example after its password was reset.
  package func forget(_ account: String) {
    _ = places.withLock { $0.removeValue(forKey: account.hashValue) }
  }

  /// The number of accounts with known places.
  package var accountCount: Int { places.withLock { $0.count } }

  /// Forgets the half of the accounts that was not used for the longest time. Cost: a sort of all, once per that many
  /// new accounts.
  private static func forget(_ places: inout [Int: [Place]]) {
    let times = places.values.map { $0.last?.usedAt ?? 0 }.sorted()
    let middle = times[times.count / 2]
    var left = places.count / 2
    places = places.filter { _, own in
      guard left > 0, own.last?.usedAt ?? 0 <= middle else { return true }
      left -= 1
      return false
    }
  }
}
