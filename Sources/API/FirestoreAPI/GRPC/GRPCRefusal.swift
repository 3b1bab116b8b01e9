package import DatabaseService
import GatewayCore
package import Transport

/// Responds to gRPC calls that reach no service.
package enum GRPCRefusal {
  /// Whether a request is a gRPC call.
  package static func isCall(_ request: borrowing HTTPRequest) -> Bool {
    request.header("content-type")?.starts(with: "application/grpc".utf8) ?? false
  }

  /// Responds with an error: only header fields, no message.
  package static func send(_ status: Status, _ exchange: Exchange) {
    // The HTTP status of every gRPC response is 200.
    exchange.countedStatus = ErrorJSON.httpStatus(status.code)
    exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("content-type", "application/grpc")
        GRPCStatus.add(status, to: &headers)
      }, compressible: false, body: { _ in })
  }
}
