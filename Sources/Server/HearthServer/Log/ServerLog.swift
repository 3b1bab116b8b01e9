import Gateway
import Transport

extension HearthConfiguration {
  /// Tells what happened to all who want to know.
  func tell(_ level: LogEvent.Level, _ name: StaticString, _ message: String, _ fields: [LogEvent.Field] = []) {
    tell(LogEvent(level, name, message, fields))
  }

  /// Tells of an event.
  func tell(_ event: LogEvent) {
    log?.write(event)
    if event.level >= .warn { warn?(event.message) } else { report?(event.message) }
  }

  /// Whether anybody wants to know what happens in the ordinary course of things.
  var logsProgress: Bool { log?.takes(.info) ?? false || report != nil }

  /// Which requests the transport tells to the log.
  var requestLog: RequestLog? {
    guard let log, let interval = requestLogInterval, log.takes(.info) else { return nil }
    return RequestLog(interval: interval) { log.write(LogEvent($0)) }
  }

  /// Who is told of requests that failed for a fault of the server's; `nil` where nobody would hear it.
  var failureLog: (@Sendable (FailedRequest) -> Void)? {
    guard log != nil || warn != nil else { return nil }
    let failures = FailureLog { message, fields in tell(.error, "request.failed", message, fields) }
    return { failures.write($0) }
  }
}

extension LogEvent {
  /// A request: what it was, not what was in it.
  fileprivate init(_ record: RequestRecord) {
    let kind = RequestKind(rawValue: record.kind) ?? .none
    self.init(
      .info, "request", "",
      [
        ("client", .text(record.client)), ("method", .text("\(record.method)".uppercased())),
        ("path", .text(String(decoding: record.path, as: UTF8.self))), ("dialect", .text(kind.label)),
        ("status", .integer(record.status)), ("milliseconds", .decimal(Double(record.microseconds) / 1000)),
      ])
  }
}
