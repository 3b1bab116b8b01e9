import Basics
package import DatabaseService
import Dispatch
import DocumentModel
import GatewayCore
import Synchronization
import Transport

/// Collects all metrics of a server as one text. It computes sums only on request.
package final class MetricsReport: Sendable {
  private let operations: OperationsService
  private let service: FirestoreService
  private let channels: @Sendable () -> Int
  /// The number of databases that have samples of their own. A test suite may create thousands.
  private static let databasesMax = 100
  /// The longest wait for the list of listeners, which the databases' watch hubs deliver asynchronously.
  private static let listenersTimeoutMilliseconds = 2000

  package init(_ operations: OperationsService, _ service: FirestoreService, channels: @escaping @Sendable () -> Int) {
    self.operations = operations
    self.service = service
    self.channels = channels
  }

  /// Returns the text. Costs some thousand counters and a few page reads for each open database. Blocks until the
  /// list of listeners arrives, for at most 2 seconds. If it does not arrive in time, the text reports no listeners.
  func text(as administrator: Administrator) -> [UInt8] {
    var text = MetricsText()
    text.family("hearth_build_info", .gauge, "Always 1; the labels describe the running program.")
    text.sample([("version", operations.version)], 1)
    appendTransport(to: &text)
    appendService(to: &text)
    appendLimits(to: &text)
    appendCommits(to: &text, as: administrator)
    appendListeners(to: &text, as: administrator)
    appendDatabases(to: &text, as: administrator)
    text.family(
      "hearth_rules_stale_files", .gauge, "Rules files whose latest version does not compile and is not in force.")
    text.sample([], operations.staleRulesFiles())
    text.family("hearth_log_dropped_lines_total", .counter, "Log lines dropped because their reader was too slow.")
    text.sample([], operations.droppedLogLines())
    ProcessUse.now().append(to: &text)
    return text.bytes
  }

  private func appendTransport(to text: inout MetricsText) {
    let counts = operations.counters.sum()
    text.family(
      "hearth_http_requests_total", .counter,
      "Requests by kind, method and status class; aborted if the client disconnected first.")
    for kind in RequestKind.allCases {
      for (index, method) in TransportCounts.methods.enumerated() {
        for (statusClass, status) in ["aborted", "1xx", "2xx", "3xx", "4xx", "5xx"].enumerated() {
          let count = counts.requests(kind: kind.rawValue, method: index, statusClass: statusClass)
          guard count > 0 else { continue }
          text.sample([("dialect", kind.label), ("method", "\(method)"), ("status", status)], count)
        }
      }
    }
    text.family(
      "hearth_http_request_duration_seconds", .histogram,
      "Time until a response was complete or, if streamed, started.")
    for kind in RequestKind.allCases {
      text.histogram(
        [("dialect", kind.label)], bounds: Self.durationBounds, counts: counts.durations(kind: kind.rawValue),
        sum: Double(counts.microseconds(kind: kind.rawValue)) / 1e6)
    }
    text.family("hearth_http_received_bytes_total", .counter, "Bytes received from clients, as on the wire.")
    text.sample([], counts.receivedBytes)
    text.family("hearth_http_sent_bytes_total", .counter, "Bytes sent to clients, as on the wire.")
    text.sample([], counts.sentBytes)
    text.family("hearth_http_connections_total", .counter, "Connections accepted.")
    text.sample([], counts.accepted)
    text.family("hearth_http_connections_refused_total", .counter, "Connections refused because too many were open.")
    text.sample([], counts.turnedAway)
    text.family(
      "hearth_http_connections_shed_total", .counter,
      "Connections closed because their clients did not read, while too many bytes waited.")
    text.sample([], counts.shed)
    text.family("hearth_http_connections_open", .gauge, "Connections open now.")
    text.sample([], max(0, counts.accepted - counts.closed))
    text.family("hearth_channels_open", .gauge, "WebChannel channels open now.")
    text.sample([], channels())
  }

  /// The upper bounds of the duration classes, in seconds.
  private static let durationBounds = DurationClasses.bounds.map { Double($0) / 1e6 }

  private func appendService(to text: inout MetricsText) {
    let counts = service.counters
    text.family("hearth_queries_total", .counter, "Queries and aggregations run.")
    text.sample([("kind", "query")], counts[.queries])
    text.sample([("kind", "aggregation")], counts[.aggregations])
    text.family("hearth_documents_read_total", .counter, "Documents returned to clients by gets and queries.")
    text.sample([], counts[.documentsRead])
    text.family("hearth_rules_evaluations_total", .counter, "Evaluations of security rules, by decision.")
    text.sample([("decision", "allow")], counts[.rulesAllowed])
    text.sample([("decision", "deny")], counts[.rulesDenied])
    text.family("hearth_listener_resets_total", .counter, "Listeners that had to restart.")
    text.sample([], counts[.listenerResets])
    text.family("hearth_transactions_begun_total", .counter, "Transactions begun by clients.")
    text.sample([], counts[.transactions])
  }

  private func appendLimits(to text: inout MetricsText) {
    guard let limiter = service.limiter else { return }
    text.family(
      "hearth_rate_limited_total", .counter, "Requests refused because a caller exceeded a limit of a minute.")
    for kind in RateLimiter.Kind.allCases where limiter.limits(kind) {
      text.sample([("limit", kind.name)], limiter.refusals(kind))
    }
  }

  private func appendCommits(to text: inout MetricsText, as administrator: Administrator) {
    let counts = service.commitCounts(as: administrator)
    text.family("hearth_commits_total", .counter, "Commits by outcome.")
    for (outcome, count) in counts.outcomes { text.sample([("outcome", outcome)], count) }
    text.family("hearth_documents_written_total", .counter, "Writes in successful commits.")
    text.sample([], counts.writes)
    text.family(
      "hearth_commit_duration_seconds", .histogram, "Time from a commit's enqueueing until it is durable.")
    text.histogram(
      bounds: Self.durationBounds, counts: counts.durations,
      sum: Double(counts.microseconds) / 1e6)
    text.family("hearth_commit_group_size", .histogram, "Commits written together with one sync.")
    text.histogram(
      bounds: CommitCounts.groupBounds.map(Double.init), counts: counts.groups,
      sum: Double(counts.outcomes.reduce(0) { $0 + $1.count }))
  }

  private func appendListeners(to text: inout MetricsText, as administrator: Administrator) {
    let done = DispatchSemaphore(value: 0)
    let found = Mutex<[ListenerDescription]>([])
    service.listeners(as: administrator) { listeners in
      found.withLock { $0 = listeners }
      done.signal()
    }
    _ = done.wait(timeout: .now() + .milliseconds(Self.listenersTimeoutMilliseconds))
    let listeners = found.withLock { $0 }
    text.family("hearth_listeners_open", .gauge, "Listeners open now: streams and feeds.")
    text.sample([], listeners.count)
    text.family("hearth_listener_targets", .gauge, "Queries and documents that listeners watch.")
    text.sample([], listeners.reduce(0) { $0 + $1.targets.count })
    text.family("hearth_listener_lag_seconds", .gauge, "Lag of the slowest listener.")
    text.sample([], Double(listeners.map(\.lag).max() ?? 0) / 1e6)
    text.family("hearth_listener_queued_bytes", .gauge, "Bytes queued for listeners.")
    text.sample([], listeners.reduce(0) { $0 + $1.queuedBytes })
  }

  private func appendDatabases(to text: inout MetricsText, as administrator: Administrator) {
    let open = service.openCounts(as: administrator)
    text.family("hearth_databases_open", .gauge, "Databases open now.")
    text.sample([], open.databases)
    text.family("hearth_transactions_open", .gauge, "Transactions of clients open now.")
    text.sample([], open.transactions)
    let shown = service.databaseUse(databasesMax: Self.databasesMax, as: administrator)
    func family(_ name: String, _ help: StaticString, _ value: (DatabaseUse) -> Int) {
      text.family(name, .gauge, help)
      for use in shown { text.sample([("project", use.id.project), ("database", use.id.database)], value(use)) }
    }
    family("hearth_database_used_bytes", "Bytes in use in a database's file.") { $0.usedBytes }
    family("hearth_database_file_bytes", "Length of a database's file.") { $0.fileBytes }
    family("hearth_database_limit_bytes", "Size that a database's file may grow to.") { $0.limitBytes }
    family("hearth_database_readers", "Snapshots of a database open now, in all processes.") { $0.readers }
  }
}
