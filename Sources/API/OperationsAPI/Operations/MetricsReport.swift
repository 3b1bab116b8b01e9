import Basics
package import DatabaseService
import Dispatch
import DocumentModel
import GatewayCore
import Synchronization
import Transport

/// A project as metrics report it.
package struct MetricsSource: Sendable {
  /// The project as a label of its samples, or `nil` if the server has only one project.
  let project: String?
  let service: FirestoreService
  /// Returns the number of open channels.
  let channels: @Sendable () -> Int

  package init(project: String?, _ service: FirestoreService, channels: @escaping @Sendable () -> Int) {
    self.project = project
    self.service = service
    self.channels = channels
  }

  var labels: [MetricsText.Label] {
    guard let project else { return [] }
    return [("project", project)]
  }
}

/// Collects all metrics of a server as one text. It computes sums only on request.
package final class MetricsReport: Sendable {
  private let operations: OperationsService
  private let sources: @Sendable () -> [MetricsSource]
  /// The number of databases that have samples of their own. A test suite may create thousands.
  private static let databasesMax = 100
  /// The longest wait for the list of listeners, which the databases' watch hubs deliver asynchronously.
  private static let listenersTimeoutMilliseconds = 2000

  /// Creates a report. `sources` returns the projects.
  package init(_ operations: OperationsService, _ sources: @escaping @Sendable () -> [MetricsSource]) {
    self.operations = operations
    self.sources = sources
  }

  /// Returns the text. Costs some thousand counters and a few page reads for each open database. Blocks until the
  /// list of listeners arrives, for at most 2 seconds. If it does not arrive in time, the text reports no listeners.
  func text(as administrator: Administrator) -> [UInt8] {
    var text = MetricsText()
    let sources = sources()
    text.family("hearth_build_info", .gauge, "Always 1; the labels describe the running program.")
    text.sample([("version", operations.version)], 1)
    appendTransport(to: &text)
    text.family("hearth_channels_open", .gauge, "WebChannel channels open now.")
    for source in sources { text.sample(source.labels, source.channels()) }
    appendService(of: sources, to: &text)
    appendLimits(of: sources, to: &text)
    appendQuotas(of: sources, to: &text)
    appendCommits(of: sources, to: &text, as: administrator)
    appendListeners(of: sources, to: &text, as: administrator)
    appendDatabases(of: sources, to: &text, as: administrator)
    text.family(
      "hearth_rules_stale_files", .gauge, "Rules files whose latest version does not compile and is not in force.")
    text.sample([], operations.staleRulesFiles())
    operations.cluster()?.append(to: &text)
    if let backups = operations.backups {
      text.family(
        "hearth_backup_last_success_timestamp_seconds", .gauge,
        "Time of the last scheduled backup that this server completed; 0 if none.")
      text.sample([], backups.lastSuccessSeconds)
      text.family("hearth_backup_failures_total", .counter, "Scheduled backups that failed.")
      text.sample([], backups.failures)
    }
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
  }

  /// The upper bounds of the duration classes, in seconds.
  private static let durationBounds = DurationClasses.bounds.map { Double($0) / 1e6 }

  private func appendService(of sources: [MetricsSource], to text: inout MetricsText) {
    let rows = sources.map { ($0.labels, $0.service.counters) }
    text.family("hearth_queries_total", .counter, "Queries and aggregations run.")
    for (labels, counts) in rows {
      text.sample(labels + [("kind", "query")], counts[.queries])
      text.sample(labels + [("kind", "aggregation")], counts[.aggregations])
    }
    text.family("hearth_documents_read_total", .counter, "Documents returned to clients by gets and queries.")
    for (labels, counts) in rows { text.sample(labels, counts[.documentsRead]) }
    text.family("hearth_rules_evaluations_total", .counter, "Evaluations of security rules, by decision.")
    for (labels, counts) in rows {
      text.sample(labels + [("decision", "allow")], counts[.rulesAllowed])
      text.sample(labels + [("decision", "deny")], counts[.rulesDenied])
    }
    text.family("hearth_listener_resets_total", .counter, "Listeners that had to restart.")
    for (labels, counts) in rows { text.sample(labels, counts[.listenerResets]) }
    text.family("hearth_transactions_begun_total", .counter, "Transactions begun by clients.")
    for (labels, counts) in rows { text.sample(labels, counts[.transactions]) }
  }

  private func appendLimits(of sources: [MetricsSource], to text: inout MetricsText) {
    guard sources.contains(where: { $0.service.limiter != nil }) else { return }
    text.family("hearth_rate_limited_total", .counter, "Requests refused because a caller exceeded a limit.")
    for source in sources {
      guard let limiter = source.service.limiter else { continue }
      for kind in RateLimiter.Kind.allCases where limiter.limits(kind) {
        text.sample(source.labels + [("limit", kind.name)], limiter.refusals(kind))
      }
    }
  }

  private func appendQuotas(of sources: [MetricsSource], to text: inout MetricsText) {
    let rows = sources.map { source in (source.labels, source.service.quotas.all.filter { $0.limit != nil }) }
    guard rows.contains(where: { !$0.1.isEmpty }) else { return }
    func family(_ name: String, _ kind: MetricsText.Kind, _ help: StaticString, _ value: (Quota) -> Int?) {
      text.family(name, kind, help)
      for (labels, quotas) in rows {
        for quota in quotas {
          if let value = value(quota) { text.sample(labels + [("quota", quota.kind.rawValue)], value) }
        }
      }
    }
    family("hearth_quota_limit", .gauge, "Quotas of a project: bytes, accounts, streams, or requests in a minute.") {
      $0.limit
    }
    family("hearth_quota_used", .gauge, "Amounts of a project that its quotas count.") {
      $0.kind == .requests ? nil : $0.used
    }
    family("hearth_quota_refused_total", .counter, "Requests refused because a quota was reached.") { $0.refusals }
  }

  private func appendCommits(
    of sources: [MetricsSource], to text: inout MetricsText, as administrator: Administrator
  ) {
    let rows = sources.map { ($0.labels, $0.service.commitCounts(as: administrator)) }
    text.family("hearth_commits_total", .counter, "Commits by outcome.")
    for (labels, counts) in rows {
      for (outcome, count) in counts.outcomes { text.sample(labels + [("outcome", outcome)], count) }
    }
    text.family("hearth_documents_written_total", .counter, "Writes in successful commits.")
    for (labels, counts) in rows { text.sample(labels, counts.writes) }
    text.family(
      "hearth_commit_duration_seconds", .histogram, "Time from a commit's enqueueing until it is durable.")
    for (labels, counts) in rows {
      text.histogram(
        labels, bounds: Self.durationBounds, counts: counts.durations, sum: Double(counts.microseconds) / 1e6)
    }
    text.family("hearth_commit_group_size", .histogram, "Commits written together with one sync.")
    for (labels, counts) in rows {
      text.histogram(
        labels, bounds: CommitCounts.groupBounds.map(Double.init), counts: counts.groups,
        sum: Double(counts.outcomes.reduce(0) { $0 + $1.count }))
    }
  }

  private func appendListeners(
    of sources: [MetricsSource], to text: inout MetricsText, as administrator: Administrator
  ) {
    let deadline = DispatchTime.now() + .milliseconds(Self.listenersTimeoutMilliseconds)
    let rows = sources.map { source in
      let done = DispatchSemaphore(value: 0)
      let found = Mutex<[ListenerDescription]>([])
      source.service.listeners(as: administrator) { listeners in
        found.withLock { $0 = listeners }
        done.signal()
      }
      _ = done.wait(timeout: deadline)
      return (source.labels, found.withLock { $0 })
    }
    text.family("hearth_listeners_open", .gauge, "Listeners open now: streams and feeds.")
    for (labels, listeners) in rows { text.sample(labels, listeners.count) }
    text.family("hearth_listener_targets", .gauge, "Queries and documents that listeners watch.")
    for (labels, listeners) in rows { text.sample(labels, listeners.reduce(0) { $0 + $1.targets.count }) }
    text.family("hearth_listener_lag_seconds", .gauge, "Lag of the slowest listener.")
    for (labels, listeners) in rows { text.sample(labels, Double(listeners.map(\.lag).max() ?? 0) / 1e6) }
    text.family("hearth_listener_queued_bytes", .gauge, "Bytes queued for listeners.")
    for (labels, listeners) in rows { text.sample(labels, listeners.reduce(0) { $0 + $1.queuedBytes }) }
  }

  private func appendDatabases(
    of sources: [MetricsSource], to text: inout MetricsText, as administrator: Administrator
  ) {
    let rows = sources.map { ($0.labels, $0.service.openCounts(as: administrator)) }
    text.family("hearth_databases_open", .gauge, "Databases open now.")
    for (labels, open) in rows { text.sample(labels, open.databases) }
    text.family("hearth_transactions_open", .gauge, "Transactions of clients open now.")
    for (labels, open) in rows { text.sample(labels, open.transactions) }
    var shown: [DatabaseUse] = []
    for source in sources where shown.count < Self.databasesMax {
      shown += source.service.databaseUse(databasesMax: Self.databasesMax - shown.count, as: administrator)
    }
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
