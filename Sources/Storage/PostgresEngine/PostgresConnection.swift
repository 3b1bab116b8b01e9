import CPostgres
import Glibc

/// One connection to PostgreSQL, opened at the first request, for one thread at a time.
///
/// A request without an answer in time closes the connection: whether it was performed is unknown then. Nothing is
/// ever canceled, because a commit whose wait for a standby is canceled becomes visible and can still be lost.
final class PostgresConnection {
  /// The time for a new connection, in milliseconds: enough to find that the first of two hosts is silent, and to
  /// connect to the other one. libpq resolves host names before, which takes as long as the resolver permits.
  private static let connectMilliseconds = 5000
  /// The pause after a failed attempt to connect, in milliseconds, which doubles with each attempt.
  private static let pauseMilliseconds = (first: 50, longest: 1000)

  private let url: String
  private var connection: OpaquePointer?
  private var prepared: Set<String> = []
  /// Whether PostgreSQL sent a warning with the last result. One says that a commit is visible, but that its wait for
  /// a standby was canceled by an operator, so that a failover may lose it.
  private var isWarned = false
  private var pause = 0
  /// The reason why the last attempt to connect failed.
  private var lastAttempt: PostgresFailure?
  /// The time of the next attempt to connect.
  private var nextAttempt = Int64.min

  /// Creates a connection that is not open yet. The first one loads libpq.
  /// - Throws: ``PostgresFailure/notAURL``, ``PostgresFailure/noLibrary(_:)``.
  init(_ url: String) throws(PostgresFailure) {
    guard PostgresURL.isOne(url) else { throw .notAURL }
    if let problem = Self.loadingProblem { throw .noLibrary(problem) }
    guard hearth_PQunderstands(url) else { throw .notAURL }
    self.url = url
  }

  /// The reason why libpq cannot be used, or `nil`. The first access loads it.
  private static let loadingProblem = hearth_PQload().map { String(cString: $0) }

  deinit { close() }

  /// Closes the connection. The next request opens another one.
  func close() {
    if let connection { hearth_PQfinish(connection) }
    connection = nil
    prepared = []
  }

  /// Performs a statement, and waits at most `milliseconds` for its result. Opens the connection before, if
  /// necessary.
  /// - Throws: ``PostgresFailure``. The connection remains usable after ``PostgresFailure/refused(state:message:)``.
  @discardableResult
  func perform(
    _ statement: PostgresStatement, _ values: [PostgresValue] = [], milliseconds: Int
  ) throws(PostgresFailure) -> PostgresResult {
    let connection = try open()
    let deadline = Self.now() + Int64(milliseconds)
    let name = "\(statement.name)"
    if !prepared.contains(name) {
      try check(hearth_PQsendPrepare(connection, name, "\(statement.text)", 0, nil))
      _ = try result(connection, deadline)
      prepared.insert(name)
    }
    let encoded = values.map(\.encoded)
    let lengths = encoded.map { Int32($0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: values.count)
    // The values lie one behind the other, so that all of them have an address.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(encoded.reduce(1) { $0 + ($1?.count ?? 0) })
    for case let value? in encoded { bytes += value }
    bytes.append(0)
    let isSent = bytes.withUnsafeBytes { bytes in
      var offset = 0
      let addresses = encoded.map { value -> UnsafePointer<CChar>? in
        guard let value else { return nil }
        defer { offset += value.count }
        return bytes.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
      }
      return hearth_PQsendQueryPrepared(connection, name, Int32(values.count), addresses, lengths, formats, 1)
    }
    try check(isSent)
    return try result(connection, deadline)
  }

  /// The most attempts for a transaction that PostgreSQL ends in favor of others.
  private static let attemptsMax = 20

  /// Runs `body`, which is one transaction, and runs it again if PostgreSQL ends it in favor of others.
  /// - Throws: the error of `body`.
  func repeating<R>(
    _ body: (PostgresConnection) throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    for _ in 1..<Self.attemptsMax {
      do throws(PostgresFailure) { return try body(self) } catch { guard error.isConflict else { throw error } }
    }
    return try body(self)
  }

  /// Performs statements in one transaction. If `body` throws, nothing of them is performed.
  /// - Throws: the error of `body`; ``PostgresFailure`` if the transaction cannot begin or commit. Only after
  ///   ``PostgresFailure/refused(state:message:)`` it is certain that nothing was performed.
  func transaction<R>(
    milliseconds: Int, _ body: () throws(PostgresFailure) -> R
  ) throws(PostgresFailure) -> R {
    try perform(PostgresStatement("begin", "BEGIN"), milliseconds: milliseconds)
    let value: R
    do throws(PostgresFailure) { value = try body() } catch {
      // PostgreSQL ends the transaction of a connection that was closed.
      guard connection != nil else { throw error }
      do throws(PostgresFailure) {
        try perform(PostgresStatement("rollback", "ROLLBACK"), milliseconds: milliseconds)
      } catch { close() }
      throw error
    }
    try perform(PostgresStatement("commit", "COMMIT"), milliseconds: milliseconds)
    return value
  }

  // MARK: libpq

  /// Returns the open connection, or opens it.
  private func open() throws(PostgresFailure) -> OpaquePointer {
    if let connection { return connection }
    if let lastAttempt, Self.now() < nextAttempt { throw lastAttempt }
    do throws(PostgresFailure) {
      let opened = try connect(Self.now() + Int64(Self.connectMilliseconds))
      (connection, pause, nextAttempt, lastAttempt) = (opened, 0, .min, nil)
      return opened
    } catch {
      pause = min(max(pause * 2, Self.pauseMilliseconds.first), Self.pauseMilliseconds.longest)
      nextAttempt = Self.now() + Int64(pause)
      var failure = error
      // libpq says so in these words if the server is not one that target_session_attrs asks for.
      if case .connection(let message) = error,
        message.contains("session is read-only") || message.contains("in hot standby mode")
      {
        failure = .readOnly(message)
      }
      lastAttempt = failure
      throw failure
    }
  }

  private func connect(_ deadline: Int64) throws(PostgresFailure) -> OpaquePointer {
    // Those after the URL have precedence over what it says. A node that vanishes in a takeover must not keep the
    // locks on rows that the next one needs.
    let options = [
      ("dbname", url), ("target_session_attrs", "read-write"), ("application_name", "hearth"), ("keepalives", "1"),
      ("keepalives_idle", "1"), ("keepalives_interval", "1"), ("keepalives_count", "2"), ("tcp_user_timeout", "2000"),
      ("client_encoding", "UTF8"),
    ]
    var keywords: [UnsafePointer<CChar>?] = []
    var values: [UnsafePointer<CChar>?] = []
    let copies = options.map { (strdup($0.0), strdup($0.1)) }
    defer {
      for (keyword, value) in copies {
        free(keyword)
        free(value)
      }
    }
    for (keyword, value) in copies {
      keywords.append(UnsafePointer(keyword))
      values.append(UnsafePointer(value))
    }
    guard let connection = hearth_PQconnectStartParams(keywords + [nil], values + [nil], 1) else {
      throw .connection("not enough memory")
    }
    // The connection ends before this object. By default, libpq writes warnings to the standard error.
    hearth_PQsetNoticeReceiver(
      connection,
      { object, notice in
        guard let object, let notice, let severity = hearth_PQresultErrorField(notice, Int32(UInt8(ascii: "V"))),
          String(cString: severity) == "WARNING"
        else { return }
        Unmanaged<PostgresConnection>.fromOpaque(object).takeUnretainedValue().isWarned = true
      }, Unmanaged.passUnretained(self).toOpaque())
    do throws(PostgresFailure) {
      guard hearth_PQstatus(connection) != CONNECTION_BAD else { throw .connection(Self.message(connection)) }
      var state = PGRES_POLLING_WRITING
      while state != PGRES_POLLING_OK {
        guard state != PGRES_POLLING_FAILED else { throw .connection(Self.message(connection)) }
        try Self.wait(connection, state == PGRES_POLLING_READING ? Int16(POLLIN) : Int16(POLLOUT), deadline)
        state = hearth_PQconnectPoll(connection)
      }
      guard hearth_PQsetnonblocking(connection, 1) == 0 else { throw .connection(Self.message(connection)) }
      // PostgreSQL ends a transaction whose node is silent, and with it the locks.
      try Self.send("SET idle_in_transaction_session_timeout = 2000", connection)
      _ = try Self.results(connection, deadline)
      // PostgreSQL compresses bodies of more than 2 KB. Its own method takes longer than the rest of an append. Without LZ4,
      // before version 14 for example, it keeps its method. Other engines may refuse the statement.
      try Self.send(
        "SELECT set_config(name, 'lz4', false) FROM pg_settings "
          + "WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)", connection)
      do throws(PostgresFailure) { _ = try Self.results(connection, deadline) } catch {
        guard case .refused(let state, _) = error, !Self.endsConnection(state) else { throw error }
      }
    } catch {
      hearth_PQfinish(connection)
      throw error
    }
    return connection
  }

  private static func send(_ text: String, _ connection: OpaquePointer) throws(PostgresFailure) {
    guard hearth_PQsendQuery(connection, text) == 1 else { throw .connection(message(connection)) }
  }

  private func check(_ isSent: Int32) throws(PostgresFailure) {
    guard isSent == 1 else {
      let message = connection.map(Self.message) ?? ""
      close()
      throw .connection(message)
    }
  }

  /// Sends what is left to send, and waits for the result. Closes the connection unless PostgreSQL answered.
  private func result(_ connection: OpaquePointer, _ deadline: Int64) throws(PostgresFailure) -> PostgresResult {
    isWarned = false
    do throws(PostgresFailure) {
      let result = try Self.results(connection, deadline)
      if isWarned { throw .notDurable }
      return result
    } catch {
      if case .refused(let state, _) = error, !Self.endsConnection(state) { throw error }
      close()
      // A server that stops may have performed the request before.
      if case .refused(_, let message) = error { throw .connection(message) }
      throw error
    }
  }

  /// Whether a connection is useless, or a request of unknown outcome, after an error: the classes 08, 57, 58 and XX
  /// are those of connections, operators, the system and internal errors, and 40003 is an unknown completion.
  private static func endsConnection(_ state: String) -> Bool {
    ["08", "57", "58", "XX"].contains(state.prefix(2)) || state == "40003" || state == "25006"
  }

  private static func results(_ connection: OpaquePointer, _ deadline: Int64) throws(PostgresFailure) -> PostgresResult
  {
    while true {
      let unsent = hearth_PQflush(connection)
      guard unsent >= 0 else { throw .connection(message(connection)) }
      if unsent == 0 { break }
      // PostgreSQL may not read before it could write.
      try wait(connection, Int16(POLLOUT | POLLIN), deadline)
      guard hearth_PQconsumeInput(connection) == 1 else { throw .connection(message(connection)) }
    }
    var last: PostgresResult?
    var failure: PostgresFailure?
    while true {
      while hearth_PQisBusy(connection) == 1 {
        try wait(connection, Int16(POLLIN), deadline)
        guard hearth_PQconsumeInput(connection) == 1 else { throw .connection(message(connection)) }
      }
      guard let result = hearth_PQgetResult(connection) else { break }
      let status = hearth_PQresultStatus(result)
      if status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK {
        last = PostgresResult(result)
        continue
      }
      // The letter C is that of the SQLSTATE, M that of the message.
      let state = hearth_PQresultErrorField(result, Int32(UInt8(ascii: "C"))).map { String(cString: $0) }
      let text = hearth_PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) }
      hearth_PQclear(result)
      failure =
        failure
        ?? state.map { .refused(state: $0, message: text ?? "") } ?? .connection(text ?? message(connection))
    }
    if let failure { throw failure }
    guard let last else { throw .connection(message(connection)) }
    return last
  }

  /// Waits until the socket is ready.
  private static func wait(_ connection: OpaquePointer, _ events: Int16, _ deadline: Int64) throws(PostgresFailure) {
    var descriptor = pollfd(fd: hearth_PQsocket(connection), events: events, revents: 0)
    guard descriptor.fd >= 0 else { throw .connection(message(connection)) }
    while true {
      let left = deadline - now()
      guard left > 0 else { throw .noAnswer }
      let ready = poll(&descriptor, 1, Int32(clamping: left))
      if ready > 0 { return }
      if ready < 0, errno != EINTR { throw .connection(String(cString: strerror(errno))) }
    }
  }

  /// Returns the last error text of libpq, in one line. It has no passwords.
  private static func message(_ connection: OpaquePointer) -> String {
    let text = hearth_PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    return text.split { $0 == "\n" || $0 == "\t" }.joined(separator: " ")
  }

  /// The time of a clock that never steps, in milliseconds.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
