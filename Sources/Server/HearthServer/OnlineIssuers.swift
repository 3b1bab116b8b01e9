import Accounts
import DocumentModel
import Dispatch
import Synchronization

/// A document of the web, as a client of HTTP fetches it.
public struct FetchedDocument: Sendable {
  public var bytes: [UInt8]
  /// The time for which the document stays valid, as its header `Cache-Control` contains it.
  public var maxAgeSeconds: Int?

  public init(bytes: [UInt8], maxAgeSeconds: Int?) {
    self.bytes = bytes
    self.maxAgeSeconds = maxAgeSeconds
  }
}

/// The published keys of trusted issuers that have no key file. A thread of their own fetches them, first when the
/// server starts, and again when they become invalid.
///
/// If a fetch fails, the previous keys stay in use, a warning is logged, and the fetch is repeated after a pause that
/// grows. Until the first fetch succeeds, the server rejects the tokens of the issuer.
package final class OnlineIssuers: Sendable {
  /// The shortest and the longest time between two successful fetches, in seconds.
  static let periodSeconds = 300...86_400
  /// The time between two fetches if the issuer does not name one, in seconds.
  static let standardSeconds = 3600
  /// The longest pause after a failed fetch, in seconds.
  static let pauseSecondsMax = 300

  private struct State {
    /// The keys that are in use, to notice a change.
    var keys: [UInt8] = []
    var failures = 0
    /// Counts the schedules. Only the newest one applies.
    var schedule = 0
  }

  private let configuration: HearthConfiguration
  private let issuers: TrustedIssuers
  private let fetch: (@Sendable (String) throws -> FetchedDocument)?
  private let states: Mutex<[State]>
  private let isStopped = Atomic(false)
  private let queue = DispatchQueue(label: "hearth issuers", qos: .utility)

  /// Prepares the fetches.
  /// - Throws: ``HearthError/configuration(_:)`` if this program has no HTTP client.
  init(_ configuration: HearthConfiguration, _ issuers: TrustedIssuers) throws(HearthError) {
    self.configuration = configuration
    self.issuers = issuers
    states = Mutex(configuration.onlineIssuers.map { _ in State() })
    guard configuration.onlineIssuers.isEmpty || configuration.fetchDocument != nil else {
      throw .configuration("a trusted issuer without a key file needs a function that fetches documents")
    }
    fetch = configuration.fetchDocument
  }

  /// Fetches all keys soon, without waiting for them.
  func reload() {
    for index in configuration.onlineIssuers.indices { schedule(index, afterSeconds: 0) }
  }

  /// Ends the fetches.
  func stop() { isStopped.store(true, ordering: .sequentiallyConsistent) }

  private func schedule(_ index: Int, afterSeconds seconds: Int) {
    let number = states.withLock { states in
      states[index].schedule += 1
      return states[index].schedule
    }
    queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent),
        states.withLock({ $0[index].schedule }) == number
      else { return }
      update(index)
    }
  }

  private func update(_ index: Int) {
    let issuer = configuration.onlineIssuers[index]
    do {
      guard let fetch else { throw TokenError.unknownKey }
      let document = try Self.keys(of: issuer, fetch)
      if states.withLock({ $0[index].keys }) != document.bytes {
        try issuers.trust(TrustedIssuer(issuer: issuer.issuer, audience: issuer.audience), keys: document.bytes)
        configuration.log(.info, "issuer.keys", "received the keys of \(issuer.issuer)")
      }
      states.withLock { ($0[index].keys, $0[index].failures) = (document.bytes, 0) }
      let period = document.maxAgeSeconds ?? Self.standardSeconds
      schedule(index, afterSeconds: min(max(period, Self.periodSeconds.lowerBound), Self.periodSeconds.upperBound))
    } catch {
      let (failures, hasKeys) = states.withLock { states in
        states[index].failures += 1
        return (states[index].failures, !states[index].keys.isEmpty)
      }
      let use = hasKeys ? "its previous keys stay in use" : "its tokens are rejected until then"
      configuration.log(
        .warn, "issuer.unreachable",
        "cannot fetch the keys of \(issuer.issuer), so the server tries again; \(use): \(error)")
      schedule(index, afterSeconds: min(1 << min(failures - 1, 20), Self.pauseSecondsMax))
    }
  }

  /// Fetches the keys of an issuer once, as the server would.
  /// - Throws: ``HearthError/configuration(_:)`` with the reason if they cannot be fetched or used.
  package static func check(
    _ issuer: HearthConfiguration.OnlineIssuer, _ fetch: (String) throws -> FetchedDocument
  ) throws(HearthError) {
    do {
      let document = try keys(of: issuer, fetch)
      try TrustedIssuers().trust(
        TrustedIssuer(issuer: issuer.issuer, audience: issuer.audience), keys: document.bytes)
    } catch { throw .configuration("\(error)") }
  }

  /// Fetches the keys of an issuer: from its own URL, or from the one that its discovery document names (OpenID Connect
  /// Discovery 1.0, section 4).
  private static func keys(
    of issuer: HearthConfiguration.OnlineIssuer, _ fetch: (String) throws -> FetchedDocument
  ) throws -> FetchedDocument {
    if let url = issuer.keysURL { return try fetch(url) }
    let discovery = try fetch("\(issuer.issuer)/.well-known/openid-configuration")
    guard let map = MapValue(json: discovery.bytes), let url = map.text("jwks_uri"), url.hasPrefix("https://"),
      let name = map.text("issuer"), name.utf8.elementsEqual(issuer.issuer.utf8)
    else {
      throw TokenError.keyUnusable("the discovery document does not name the issuer and an https URL of its keys")
    }
    return try fetch(url)
  }
}
