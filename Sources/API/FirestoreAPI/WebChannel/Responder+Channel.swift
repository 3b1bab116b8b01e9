import GatewayCore
import Transport

// Responses on channels (listen-and-webchannel.md, section 3.5): chunks, each after its length.
extension Responder {
  /// Responds to a POST with one chunk of ASCII text. A header informs the client of HTTP/2, with which it may send
  /// several POSTs at once.
  func sendChunk(_ text: [UInt8], isHTTP2: Bool = false) {
    exchange.respond(
      status: 200,
      headers: { headers in
        writeChannelHeaders(&headers)
        if isHTTP2 { headers.add("X-Client-Wire-Protocol", "h2") }
      },
      body: { body in
        body.append(decimal: text.count)
        body.append(UInt8(ascii: "\n"))
        body.append(contentsOf: text)
      })
  }

  /// Responds to a GET with chunks as they become available.
  func streamChannel(from source: any BodySource) {
    exchange.stream(
      status: 200,
      headers: { headers in
        writeChannelHeaders(&headers)
        // Keeps nginx from buffering.
        headers.add("X-Accel-Buffering", "no")
      }, from: source)
  }

  /// Responds with an error, after which the client abandons the channel.
  func sendFault(_ fault: ChannelFault) {
    exchange.respond(
      status: 400, headers: { writeChannelHeaders(&$0) }, body: { $0.append(contentsOf: fault.description.utf8) })
  }

  private func writeChannelHeaders(_ headers: inout HeaderWriter) {
    headers.add("Content-Type", "text/plain; charset=utf-8")
    headers.add("X-Content-Type-Options", "nosniff")
    headers.add("Cache-Control", "no-store")
    writeOrigin(&headers)
  }
}
