import GatewayCore
import Transport

extension Responder {
  /// Responds with a feed. Its headers keep caches from storing it and proxies from buffering it.
  func stream(_ format: ChangeFeedFormat, from source: any BodySource) {
    exchange.stream(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", format.contentType)
        headers.add("X-Content-Type-Options", "nosniff")
        headers.add("Cache-Control", "no-store, no-transform")
        headers.add("X-Accel-Buffering", "no")
        writeOrigin(&headers)
      }, from: source)
  }
}
