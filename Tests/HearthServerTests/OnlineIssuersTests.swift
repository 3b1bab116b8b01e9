import Dispatch
import Synchronization
import Testing

@testable import HearthServer

/// The fetches of the keys of several issuers.
@Suite struct OnlineIssuersTests {
  /// A fetch of the first issuer lasts until the keys of the second one were fetched.
  @Test func aSlowIssuerDelaysNoOther() throws {
    let (otherWasFetched, slowEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let sawOther = Atomic(false)
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.port = 0
    configuration.project = "p"
    configuration.mapBytes = 1 << 30
    configuration.stopGraceSeconds = 1
    configuration.onlineIssuers = ["slow", "fast"].map { name in
      HearthConfiguration.OnlineIssuer(
        issuer: "https://\(name).example", audience: "a", keysURL: "https://\(name).example/keys")
    }
    configuration.fetchDocument = { url in
      if url.contains("slow") {
        sawOther.store(otherWasFetched.wait(timeout: .now() + 20) == .success, ordering: .sequentiallyConsistent)
        slowEnded.signal()
      } else {
        otherWasFetched.signal()
      }
      return FetchedDocument(bytes: Array(#"{"keys":[]}"#.utf8), maxAgeSeconds: 3600)
    }
    let server = try Server(configuration)
    _ = try server.start()
    defer { server.stop() }
    #expect(slowEnded.wait(timeout: .now() + 60) == .success)
    let wasDelayed = !sawOther.load(ordering: .sequentiallyConsistent)
    #expect(!wasDelayed)
  }
}
