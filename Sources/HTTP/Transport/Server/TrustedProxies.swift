import CUV
import Glibc

/// The networks of the proxies whose headers about the client are trusted. Connections from this machine are always.
package struct TrustedProxies: Sendable {
  private struct Network {
    /// The address in IPv6 form.
    var address: [UInt8]
    /// The number of leading bits that belong to the network.
    var bits: Int
  }

  private var networks: [Network] = []

  /// Trusts only proxies on this machine.
  package init() {}

  /// Adds an address such as `10.0.0.7`, or a network such as `10.0.0.0/8` or `2001:db8::/32`. Returns false if the text
  /// is neither.
  package mutating func add(_ text: String) -> Bool {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let (address, isIPv4) = Self.parse(parts[0]) else { return false }
    let bitsMax = isIPv4 ? 32 : 128
    guard let bits = parts.count == 2 ? Int(parts[1]) : bitsMax, (0...bitsMax).contains(bits) else { return false }
    networks.append(Network(address: address, bits: isIPv4 ? 96 + bits : bits))
    return true
  }

  private static func parse(_ text: String) -> (address: [UInt8], isIPv4: Bool)? {
    var four = in_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      return (Array(repeating: 0, count: 10) + [0xFF, 0xFF] + withUnsafeBytes(of: four) { Array($0) }, true)
    }
    var six = in6_addr()
    guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
    return (withUnsafeBytes(of: six) { Array($0) }, false)
  }

  /// Whether the other end of a socket is this machine or a trusted proxy. Cost: one system call.
  func contains(peerOf socket: Int32) -> Bool {
    PeerAddress.with(socket) { contains($0) }
  }

  /// Whether an address, of 4 or 16 bytes, is this machine or a trusted proxy.
  func contains(_ address: UnsafeRawBufferPointer) -> Bool {
    switch address.count {
    case 4:
      if address[0] == 127 { return true }
      return contains { index in index < 10 ? 0 : index < 12 ? 0xFF : address[index - 12] }
    case 16:
      let isLoopback = address[..<15].allSatisfy { $0 == 0 } && address[15] == 1
      let isMapped = address[..<10].allSatisfy { $0 == 0 } && address[10] == 0xFF && address[11] == 0xFF
      return isLoopback || isMapped && address[12] == 127 || contains { address[$0] }
    default: return false
    }
  }

  private func contains(_ byte: (Int) -> UInt8) -> Bool {
    networks.contains { network in
      for index in 0..<16 {
        let bits = network.bits - 8 * index
        if bits <= 0 { return true }
        let mask: UInt8 = bits >= 8 ? 0xFF : ~(0xFF >> UInt8(bits))
        if (byte(index) ^ network.address[index]) & mask != 0 { return false }
      }
      return true
    }
  }
}

/// The numeric address of the other end of a socket, in binary form.
enum PeerAddress {
  /// Calls `body` with the 4 or 16 bytes of the address, or no bytes if the other end has none.
  static func with<Result>(_ socket: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      let status = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &length) }
      let bytes = UnsafeRawBufferPointer(start: pointer, count: MemoryLayout<sockaddr_storage>.size)
      guard status == 0 else { return body(UnsafeRawBufferPointer(rebasing: bytes[..<0])) }
      switch Int32(pointer.pointee.ss_family) {
      case AF_INET: return body(UnsafeRawBufferPointer(rebasing: bytes[4..<8]))
      case AF_INET6: return body(UnsafeRawBufferPointer(rebasing: bytes[8..<24]))
      default: return body(UnsafeRawBufferPointer(rebasing: bytes[..<0]))
      }
    }
  }
}
