import WebClient

extension Command {
  /// Reports whether a server is ready.
  static let health = Command(
    name: "health", summary: "Reports whether a server is ready to serve clients.",
    options: [DatabaseChoice.serverOption, DatabaseChoice.authoritiesOption, .flag("quiet", "print nothing if it is")],
    details: """
      Requests /readyz, without a token. Exits with 0 if the server is ready, otherwise with 1. Use it as the health check
      of a container or of a supervisor. It waits at most 5 seconds for the connection and 5 for the response.
      """,
    examples: [
      ("hearth health", "the server at http://127.0.0.1:8080"),
      ("hearth health --server http://127.0.0.1:9090", "the address of --metrics-address, which names the reasons"),
    ],
    run: { arguments in
      let (host, port, isSecure) = try ServerClient.address(DatabaseChoice.server(arguments))
      var options = HTTPClient.Options()
      options.authoritiesFile = DatabaseChoice.authorities(arguments)
      options.connectMilliseconds = HealthCheck.waitMilliseconds
      options.stallMilliseconds = HealthCheck.waitMilliseconds
      let client = HTTPClient(host: host, port: port, isSecure: isSecure, options: options)
      let response = try client.send("GET", "/readyz")
      guard response.status == 200 else {
        let reason = String(decoding: response.body.prefix(HealthCheck.reasonBytesMax), as: UTF8.self)
        throw CommandFailure.failed("\(client.address) is not ready (\(response.status)): \(reason)")
      }
      if !arguments.has("quiet") { Terminal.output.write("ready\n") }
      return 0
    })
}

/// The limits of `hearth health`.
private enum HealthCheck {
  /// The longest wait for the connection, and then for the response.
  static let waitMilliseconds = 5_000
  /// How much of the server's reasons the message contains, in bytes.
  static let reasonBytesMax = 1_000
}
