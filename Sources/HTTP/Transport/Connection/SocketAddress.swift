// libuv's header declares the socket types for Swift.
import CUV
import Glibc

/// A numeric address and port, as text. The host of a Unix socket is `unix`.
struct SocketAddress: Equatable {
  let host: String
  let port: Int

  /// The address of the other end of a connected socket, or `nil` after a disconnect.
  static func peer(of socket: Int32) -> SocketAddress? {
    read { getpeername(socket, $0, $1) }
  }

  /// The address of this end of a socket.
  static func local(of socket: Int32) -> SocketAddress? {
    read { getsockname(socket, $0, $1) }
  }

  private static func read(
    _ fill: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> SocketAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> SocketAddress? in
        guard fill(address, &length) == 0 else { return nil }
        if address.pointee.sa_family == sa_family_t(AF_UNIX) { return SocketAddress(host: "unix", port: 0) }
        return name(of: address, length: length)
      }
    }
  }

  private static func name(of address: UnsafePointer<sockaddr>, length: socklen_t) -> SocketAddress? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { host -> SocketAddress? in
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXSERV)) { service -> SocketAddress? in
        let status = getnameinfo(
          address, length, host.baseAddress, socklen_t(host.count), service.baseAddress, socklen_t(service.count),
          NI_NUMERICHOST | NI_NUMERICSERV)
        guard status == 0, let hostText = host.baseAddress, let serviceText = service.baseAddress else { return nil }
        return SocketAddress(host: String(cString: hostText), port: Int(String(cString: serviceText)) ?? 0)
      }
    }
  }
}
