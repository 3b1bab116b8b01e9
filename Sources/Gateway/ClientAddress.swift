import Transport

extension HTTPRequest {
  /// Where the request comes from; `nil` for this machine. A proxy on this machine says for whom it asks.
  var clientAddress: String? {
    let peer = remoteAddress
    guard peer.hasPrefix("127.") || peer == "::1" || peer.hasPrefix("::ffff:127.") else { return peer }
    guard let header = header("x-forwarded-for") else { return nil }
    // The last one is the proxy's own word; those before are the client's.
    let last = header.split(separator: UInt8(ascii: ",")).last ?? header[0..<0]
    let text = String(decoding: last.filter { (0x21...0x7E).contains($0) }.prefix(64), as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
