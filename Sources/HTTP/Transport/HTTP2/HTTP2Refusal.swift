extension Exchange {
  /// Sends the response of the transport itself over HTTP/2. A gRPC client gets trailers only, with a gRPC status.
  func refuse(_ refusal: Refusal, isGRPC: Bool, _ configuration: TransportConfiguration) {
    guard isAwaitingResponse else { return }
    if isGRPC {
      respond(
        status: 200,
        headers: { headers in
          headers.add("content-type", "application/grpc")
          headers.add("grpc-status", Self.grpcStatus(refusal.status))
          headers.add("grpc-message", refusal.text)
        }, compressible: false, body: { _ in })
    } else {
      let body = configuration.errorBody(refusal.status, refusal.text)
      respond(
        status: refusal.status, headers: { $0.add("Content-Type", "application/json; charset=utf-8") },
        compressible: false, body: { $0.append(contentsOf: body) })
    }
  }

  private static func grpcStatus(_ status: Int) -> StaticString {
    switch status {
    case 500: "13"  // INTERNAL
    case 408: "4"  // DEADLINE_EXCEEDED
    case 413, 414, 429, 431: "8"  // RESOURCE_EXHAUSTED
    case 501, 415: "12"  // UNIMPLEMENTED
    case 503: "14"  // UNAVAILABLE
    default: "3"  // INVALID_ARGUMENT
    }
  }
}
