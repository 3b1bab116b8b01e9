import Accounts
package import DocumentModel
import Synchronization
import WireFormat

/// An identity that a provider has confirmed, and whose app has not used it yet.
package struct PendingIdentity: Sendable {
  package var providerID: String
  /// The claims of the verified token.
  package var claims: MapValue
  /// The provider's access token, for the app.
  package var accessToken: String?
  /// The time at which the provider confirmed the identity, in seconds since 1970. All names of the identity end
  /// ``ProviderLimits/identitySeconds`` later.
  package var confirmedSeconds: Int64
}

/// The identities that wait for their apps. They exist only in memory. An app names one by a random text, in the place
/// of the provider's ID token, and can use it once.
final class PendingIdentities: Sendable {
  private struct Entry {
    var hash: [UInt8]
    var identity: PendingIdentity
    var expirySeconds: Int64
  }

  /// The prefix of the names. No JWT begins with it: the first character of a JWT encodes a brace.
  private static let prefix = "hearth_"

  private let entries = Mutex<[Entry]>([])
  /// Returns the current time, in seconds.
  private let now: @Sendable () -> Int64

  /// Creates an empty table. `now` returns the current time, in seconds.
  init(now: @escaping @Sendable () -> Int64) { self.now = now }

  /// Adds an identity and returns its name. Only the hash of the name is kept.
  func add(_ identity: PendingIdentity) -> String {
    let name = Self.prefix + RandomBytes.text(32)
    let now = now()
    let entry = Entry(
      hash: RandomBytes.sha256(name.utf8), identity: identity,
      expirySeconds: identity.confirmedSeconds + ProviderLimits.identitySeconds)
    entries.withLock { entries in
      entries.removeAll { $0.expirySeconds <= now }
      if entries.count >= ProviderLimits.identitiesMax { entries.removeFirst() }
      entries.append(entry)
    }
    return name
  }

  /// Whether a text has the form of a name.
  static func isName(_ text: String) -> Bool { text.utf8.starts(with: prefix.utf8) }

  /// Removes an identity and returns it, or `nil` if the name is unknown or too old, or another
  /// provider confirmed the identity.
  func take(_ name: String, providerID: String) -> PendingIdentity? {
    let hash = RandomBytes.sha256(name.utf8)
    let now = now()
    let found: Entry? = entries.withLock { entries in
      entries.firstIndex { $0.hash == hash }.map { entries.remove(at: $0) }
    }
    guard let found, found.expirySeconds > now, found.identity.providerID.utf8.elementsEqual(providerID.utf8) else {
      return nil
    }
    return found.identity
  }
}
