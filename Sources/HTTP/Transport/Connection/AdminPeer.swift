import CUV
import Glibc

/// The processes that may use the admin socket.
///
/// The permissions of the socket and of its folder keep other users out. This check holds even if somebody loosens them.
enum AdminPeer {
  /// The connections over the admin socket that a full server accepts in addition to `connectionsMax`. They let an
  /// operator revoke a key while clients use all others.
  static let extraConnectionsMax = 16

  /// The response to a process of another user.
  static let refusal: StaticString =
    """
    HTTP/1.1 403 Forbidden\r
    Content-Type: text/plain\r
    Content-Length: 73\r
    Connection: close\r
    \r
    Only the user of the server's process and root may use the admin socket.

    """

  /// Whether the process that connected runs as the user of this process, or as root. The kernel recorded its user when
  /// it connected (`SO_PEERCRED`, unix(7)).
  static func isAdmitted(_ socket: Int32) -> Bool {
    let user = cuv_peer_user(socket)
    return user == 0 || user == Int(geteuid())
  }
}
