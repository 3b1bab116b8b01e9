import HearthServer

/// The facts that an operator should know when a server starts: on a terminal, lines for people, otherwise log events.
struct StartReport {
  private let configuration: HearthConfiguration
  private let url: String
  private let consoleURL: String?
  private let remarks: [String]
  /// The findings of `hearth doctor` that need attention and cost little to determine.
  let warnings: [Finding]

  /// Examines the configuration of a server that listens on `url`. `now` is in microseconds since 1970. `remarks` say what
  /// `firebase.json` contains in vain. `consoleURL` is the address of the console, and `hasOperators` says whether the
  /// project has an operator.
  init(
    _ configuration: HearthConfiguration, url: String, consoleURL: String? = nil, now: Int64, remarks: [String] = [],
    hasOperators: Bool = true
  ) {
    (self.configuration, self.url, self.consoleURL, self.remarks) = (configuration, url, consoleURL, remarks)
    // A cluster has its project and its rules from PostgreSQL.
    let isNode = configuration.cluster != nil
    let isNamed = configuration.loadProjects == nil || configuration.project != nil
    var findings = isNamed && !isNode ? RulesChecks(configuration: configuration, now: now).urgent() : []
    let serving = ServingChecks(configuration: configuration, holder: nil, now: now)
    findings += serving.exposure() + serving.certificates()
    if case .directory(let path) = configuration.storage, !isNode {
      findings += ProjectChecks(configuration: configuration, directory: path).findings()
    }
    findings += OperatorChecks(configuration: configuration, hasOperators: hasOperators).findings()
    warnings = findings.filter { $0.level != .ok }
  }

  /// The lines for a terminal: mode, data, rules and addresses. A line is notable if a newcomer could be surprised: data
  /// in memory, or no rules.
  var lines: [(title: String, text: String, isNotable: Bool)] {
    let isEmulator = configuration.mode == .emulator
    let console = consoleURL.map { [("console", $0, isNotable: false)] } ?? []
    return [
      (
        "mode",
        isEmulator
          ? "emulator, for development and tests: accepts unsigned tokens, and \"owner\" as administrator"
          : "production: accepts signed tokens only",
        false
      ),
      ("data", data, configuration.storage == .inMemory),
      (
        "rules", rules, configuration.rules.isEmpty && configuration.loadProjects == nil && configuration.cluster == nil
      ),
      ("address", addresses, false),
    ] + console
  }

  private var data: String {
    let folders = configuration.loadProjects.map { (try? $0())?.count ?? 0 }
    let project =
      folders.map { "\($0) project\($0 == 1 ? "" : "s") in folders" }
      ?? (configuration.cluster == nil
        ? "project \(configuration.project ?? "of each request")" : "replica of a cluster")
    return switch configuration.storage {
    case .inMemory: "in memory, lost when the server stops; \(project)"
    case .directory(let path): "\(path), \(project); administer it with --data \(path)"
    }
  }

  private var rules: String {
    let isEmulator = configuration.mode == .emulator
    if configuration.loadProjects != nil { return "those of each project" }
    if configuration.cluster != nil { return "those that `hearth cluster deploy` stored" }
    let documents =
      switch (configuration.rules.isEmpty, isEmulator) {
      case (true, true): "none: every client may read and write all documents"
      case (true, false): "none: only administrators have access"
      case (false, _): configuration.rules.map { $0.path }.joined(separator: ", ")
      }
    return documents + "; files: \(configuration.storageRules ?? "none: only administrators")"
  }

  private var addresses: String {
    var text = url + (configuration.tls == nil ? "" : " (TLS)")
    if let publicURL = configuration.publicURL { text += ", public \(publicURL)" }
    if let metrics = configuration.metricsAddress { text += ", metrics on port \(metrics.port)" }
    return text
  }

  /// Shows the report. On a terminal with the plain log format, it consists of lines for people. Otherwise each part is
  /// an event of the log. With the plain format, the facts are one line of JSON, because programs read it.
  func show(_ arguments: Arguments) {
    let isPlain = arguments.value("log") ?? "plain" == "plain"
    let terminal = Terminal.error
    guard isPlain, terminal.isTerminal else {
      for text in remarks { configuration.log?.write(LogEvent(.info, "configuration.firebase", text)) }
      let event = LogEvent(.info, "server.listening", "", fields)
      if !isPlain {
        configuration.log?.write(event)
      } else if !arguments.has("quiet") {
        configuration.log?.flush()
        let writer = LogWriter(format: .json)
        writer.write(event)
        writer.flush()
      }
      for warning in warnings {
        let fields: [LogEvent.Field] = [("topic", .text(warning.topic)), ("advice", .text(warning.advice ?? ""))]
        let text = isPlain ? warning.text + (warning.advice.map { " (\($0))" } ?? "") : warning.text
        configuration.log?.write(LogEvent(.warn, "configuration.warning", text, isPlain ? [] : fields))
      }
      return
    }
    configuration.log?.flush()
    var text = ""
    if !arguments.has("quiet") {
      for line in lines {
        let padding = String(repeating: " ", count: 9 - line.title.count)
        let shown = TerminalText.line(line.text)
        text += terminal.bold(line.title) + padding + (line.isNotable ? terminal.yellow(shown) : shown) + "\n"
      }
    }
    for remark in remarks { text += terminal.yellow("warning: ") + TerminalText.line(remark) + "\n" }
    for warning in warnings {
      text += terminal.yellow("warning: ") + TerminalText.line(warning.text) + "\n"
      if let advice = warning.advice { text += "         " + terminal.faint(TerminalText.line(advice)) + "\n" }
    }
    terminal.write(text)
  }

  private var fields: [LogEvent.Field] {
    var fields: [LogEvent.Field] = [("url", .text(url)), ("version", .text(Version.current))]
    fields.append(("mode", .text(configuration.mode == .emulator ? "emulator" : "production")))
    if let project = configuration.project { fields.append(("project", .text(project))) }
    if let load = configuration.loadProjects { fields.append(("projects", .integer((try? load())?.count ?? 0))) }
    if case .directory(let path) = configuration.storage {
      fields.append(("data", .text(path)))
    } else {
      fields.append(("data", .text("in memory")))
    }
    fields.append(("rules", .text(configuration.rules.map { $0.path }.joined(separator: ","))))
    if let rules = configuration.storageRules { fields.append(("storageRules", .text(rules))) }
    if let publicURL = configuration.publicURL { fields.append(("publicUrl", .text(publicURL))) }
    if let consoleURL { fields.append(("console", .text(consoleURL))) }
    if let metrics = configuration.metricsAddress {
      fields.append(("metrics", .text("\(metrics.host):\(metrics.port)")))
    }
    return fields
  }
}
