import Glibc
import Testing

@testable import Transport

/// The networks of trusted proxies.
@Suite struct TrustedProxiesTests {
  private func contains(_ proxies: TrustedProxies, _ text: String) -> Bool {
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 { return bytes[..<4].withUnsafeBytes { proxies.contains($0) } }
    guard inet_pton(AF_INET6, text, &bytes) == 1 else { return false }
    return bytes.withUnsafeBytes { proxies.contains($0) }
  }

  @Test func thisMachineIsAlwaysTrusted() {
    for address in ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"] {
      #expect(contains(TrustedProxies(), address), "\(address)")
    }
    for address in ["10.0.0.7", "128.0.0.1", "::", "::2", "::ffff:10.0.0.7", "fe80::1"] {
      #expect(!contains(TrustedProxies(), address), "\(address)")
    }
    #expect(!TrustedProxies().contains(UnsafeRawBufferPointer(start: nil, count: 0)))
  }

  @Test(arguments: [
    ("10.0.0.7", ["10.0.0.7", "::ffff:10.0.0.7"], ["10.0.0.6", "11.0.0.7", "::ffff:10.0.0.8"]),
    ("10.128.0.0/9", ["10.128.0.1", "10.255.255.255"], ["10.127.255.255", "11.128.0.1"]),
    ("0.0.0.0/0", ["8.8.8.8"], ["2001:db8::1"]),
    ("fd00:1::/64", ["fd00:1::1", "fd00:1:0:0:ffff::"], ["fd00:1:0:1::1", "10.0.0.7"]),
    ("2001:db8::5", ["2001:db8::5"], ["2001:db8::4"]),
  ])
  func addressesAndNetworksAreTrusted(network: String, inside: [String], outside: [String]) {
    var proxies = TrustedProxies()
    let isAdded = proxies.add(network)
    #expect(isAdded)
    for address in inside { #expect(contains(proxies, address), "\(address)") }
    for address in outside { #expect(!contains(proxies, address), "\(address)") }
  }

  @Test(arguments: [
    "", "proxy", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "10.0.0.7/8/9", "[::1]",
  ])
  func otherTextsAreRefused(text: String) {
    var proxies = TrustedProxies()
    let isAdded = proxies.add(text)
    #expect(!isAdded)
  }
}
