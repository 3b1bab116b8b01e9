import Transport

extension HTTPRequest {
  /// Whether a proxy or a browser sent a request over the admin socket on behalf of another client.
  ///
  /// A proxy that may open the socket would make each of its clients an administrator. Most proxies add one of these
  /// fields, or pass the host that the client names. Hearth's command line and `curl --unix-socket` with
  /// `http://localhost` send none of them.
  var isForwardedToAdminSocket: Bool {
    guard isFromAdminSocket else { return false }
    guard let host = header("host") ?? header(":authority"), host.elementsEqual("localhost".utf8) else { return true }
    for field in ["origin", "forwarded", "via", "x-real-ip"] as [StaticString] where header(field) != nil {
      return true
    }
    return (0..<headerCount).contains { index in
      let name = header(at: index).name
      return name.count > 12 && zip(name, "x-forwarded-".utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
    }
  }
}
