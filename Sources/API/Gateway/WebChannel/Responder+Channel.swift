import Transport

// What channels answer (listen-and-webchannel.md, section 3.5): chunks, a length in front of each.
extension Responder {
  /// Answers a POST with one chunk, ASCII text. Over HTTP/2 the client is told so: it may have several POSTs under way.
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

  /// Answers a GET with chunks, as they come.
  func streamChannel(from source: any BodySource) {
    exchange.stream(
      status: 200,
      headers: { headers in
        writeChannelHeaders(&headers)
        // Asks nginx to hold nothing back.
        headers.add("X-Accel-Buffering", "no")
      }, from: source)
  }

  /// Refuses a request: the client gives the channel up.
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
