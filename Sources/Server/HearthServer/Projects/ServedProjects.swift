import Accounts
import Basics
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import Gateway
import OperationsAPI
import Synchronization
import Transport

/// The projects that a server serves: the one of its own configuration, those of
/// ``HearthConfiguration/loadProjects``, or both.
///
/// A project whose configuration is not valid is refused with UNAVAILABLE, or keeps its previous configuration; the
/// others are served. A project that is removed or changed completes its requests before its files are closed, for at
/// most ``HearthConfiguration/stopGraceSeconds``. Until then its new configuration waits.
final class ServedProjects: Sendable {
  /// A project of ``HearthConfiguration/loadProjects``.
  private struct Entry {
    /// The configuration that is in force, or that waits.
    var source: ProjectSource
    var stack: ProjectStack?
    /// The reason why the newest configuration is not in force.
    var problem: String?
  }

  /// A stack that no new request reaches.
  private struct Retired {
    let id: String
    var stack: ProjectStack
    /// The time at which its requests are ended.
    let end: DispatchTime
  }

  private struct State {
    var own: ProjectStack?
    var entries: [String: Entry] = [:]
    /// The quotas of the server's configuration, or `nil` before a reload.
    var quotas: QuotaLimits?
    /// Stacks that no new request reaches.
    var retiring: [Retired] = []
    /// Ends the running requests of a stack.
    var cancelRequests: (@Sendable (ObjectIdentifier) -> Void)?
    var operations: OperationsService?
    var addresses: ServerAddresses?
    /// The logged problems with names that several projects have.
    var problems: [String] = []
    var isStarted = false
    var isStopped = false
  }

  private let configuration: HearthConfiguration
  private let directory: DataDirectory?
  private let places: PlaceThrottles
  private let state = Mutex(State())
  /// Serializes changes of the set of projects.
  private let queue = DispatchQueue(label: "hearth projects", qos: .utility)
  private let dispatcher: ProjectDispatcher?
  /// Finds the project of a request at the address of the console.
  private let consoleDispatcher: ProjectDispatcher?

  init(_ configuration: HearthConfiguration, _ directory: DataDirectory?) {
    self.configuration = configuration
    self.directory = directory
    places = PlaceThrottles { [clock = configuration.clock] in clock.now() }
    dispatcher = configuration.loadProjects.map { _ in ProjectDispatcher() }
    consoleDispatcher = configuration.loadProjects.map { _ in ProjectDispatcher() }
  }

  // MARK: Access

  /// The project of the server's own configuration, or `nil` if it has none or that project has its own folder.
  var own: ProjectStack? { state.withLock { $0.own } }

  /// All projects that are served, the server's own first, then by ID.
  var stacks: [ProjectStack] {
    state.withLock { state in
      (state.own.map { [$0] } ?? []) + state.entries.sorted { $0.key < $1.key }.compactMap(\.value.stack)
    }
  }

  /// The server's own project, or the first one. A server in whose process other code uses a project has one.
  var first: ProjectStack {
    guard let first = stacks.first else { preconditionFailure("the server serves no project") }
    return first
  }

  /// Handles the requests of clients.
  var handler: any RequestHandler { dispatcher ?? first.gateway.requests }

  /// Handles the requests of operators at the address of the console, or `nil` if the server has none.
  var consoleHandler: (any RequestHandler)? {
    guard configuration.consoleAddress != nil else { return nil }
    return consoleDispatcher ?? first.gateway.console
  }

  /// Whether some project has rules files to watch, or may have some later.
  var hasRules: Bool { dispatcher != nil || stacks.contains { !$0.hasNoRules } }

  var staleRulesFiles: Int { stacks.reduce(0) { $0 + $1.staleRulesFiles } }

  // MARK: Lifetime

  /// Opens the projects. The server's own must be valid.
  /// - Throws: ``HearthError`` if the server's own project cannot be opened, or an emulator is to serve several.
  func open(_ operations: OperationsService, _ addresses: ServerAddresses) throws(HearthError) {
    if dispatcher != nil, configuration.mode != .production {
      throw .configuration("an emulator serves every project that a request names; --projects is for production")
    }
    let sources = try configuration.loadProjects?() ?? []
    // A node opens the project when it becomes the owner of the cluster.
    guard configuration.cluster == nil else { return }
    let isOwn =
      dispatcher == nil || configuration.project != nil && !sources.contains { $0.id == configuration.project }
    if isOwn {
      var own = configuration
      own.isOneOfSeveral = dispatcher != nil
      let stack = try ProjectStack(own, directory, operations, addresses, places)
      state.withLock { $0.own = stack }
    }
    guard let dispatcher else { return }
    dispatcher.serveOperations(operations, mode: configuration.serverMode)
    state.withLock { ($0.operations, $0.addresses) = (operations, addresses) }
    serve(sources)
    warnOfUnownedFiles()
  }

  /// Replaces the server's own project, which an ``OwnedProject`` opens and closes.
  func setOwn(_ stack: ProjectStack?) { state.withLock { $0.own = stack } }

  /// Starts the work in the background.
  func start() {
    state.withLock { $0.isStarted = true }
    for stack in stacks { stack.start(isEager: dispatcher == nil) }
  }

  /// Reads the configurations of all projects again, and the files of those that did not change.
  func reload() {
    for stack in stacks {
      stack.reloadRules(all: true)
      stack.reloadIssuersAndApps()
    }
    reloadQuotas()
    guard let load = configuration.loadProjects else { return }
    do throws(HearthError) { serve(try load()) } catch {
      configuration.log(
        .error, "projects.refused", "\(error.description)\nthe previous configuration of all projects stays in force")
    }
  }

  /// Reads the quotas of the server's configuration again.
  private func reloadQuotas() {
    guard let load = configuration.loadQuotas else { return }
    do throws(HearthError) {
      let quotas = try load()
      let own = state.withLock { state in
        state.quotas = quotas
        return state.own
      }
      try own?.apply(quotas)
    } catch {
      configuration.log(.error, "quotas.refused", "\(error.description)\nthe previous quotas stay in force")
    }
  }

  /// Sets the function that ends the running requests of a stack.
  func setCancel(_ cancel: @escaping @Sendable (ObjectIdentifier) -> Void) {
    state.withLock { $0.cancelRequests = cancel }
  }

  /// Ends the running requests of a stack.
  func cancelRequests(of stack: ObjectIdentifier) { state.withLock { $0.cancelRequests }?(stack) }

  /// Does the regular work of all projects.
  func maintain() {
    for stack in stacks { stack.maintain() }
    guard dispatcher != nil else { return }
    queue.sync { openWaiting() }
  }

  /// Ends the work in the background, before the server completes its requests.
  func stopWork() {
    state.withLock { $0.isStopped = true }
    for stack in stacks { stack.stopFetching() }
  }

  /// Closes the files of all projects.
  func close() {
    for stack in stacks { stack.close() }
    for retired in state.withLock({ $0.retiring }) { retired.stack.close() }
  }

  // MARK: Changes

  /// Serves the projects with these configurations, and no others.
  private func serve(_ sources: [ProjectSource]) {
    queue.sync {
      update(sources)
      // The dispatcher retains the stacks that it serves.
      route()
      openWaiting()
    }
  }

  /// Brings the projects into line with their configurations. Runs on the queue.
  private func update(_ sources: [ProjectSource]) {
    var entries = state.withLock { $0.entries }
    var unused: [Retired] = []
    let end = DispatchTime.now() + .seconds(configuration.stopGraceSeconds)
    let ownID = own == nil ? nil : configuration.project
    for (id, entry) in entries where !sources.contains(where: { $0.id == id }) {
      configuration.log(.info, "project.removed", "project \(id) is no longer served", [("project", .text(id))])
      if let stack = entry.stack { unused.append(Retired(id: id, stack: stack, end: end)) }
      entries[id] = nil
    }
    for source in sources {
      guard source.id != ownID else {
        refuse(source, "the server already serves it with its own configuration; restart the server", isServed: true)
        continue
      }
      var entry = entries[source.id] ?? Entry(source: source)
      do throws(HearthError) {
        try source.check()
        if let stack = entry.stack, entry.source.fingerprint != source.fingerprint {
          unused.append(Retired(id: source.id, stack: stack, end: end))
          entry.stack = nil
        }
        // A change of quotas does not change the fingerprint, so that it interrupts nothing.
        if let stack = entry.stack { try stack.apply(quotas(of: source.configuration.get())) }
        entry.source = source
        entry.problem = nil
      } catch {
        // The host names and keys of the last valid configuration stay in force with it.
        if entry.stack == nil { entry.source = source }
        if entry.problem != error.description { refuse(source, error.description, isServed: entry.stack != nil) }
        entry.problem = error.description
      }
      entries[source.id] = entry
    }
    state.withLock { state in
      state.entries = entries
      state.retiring += unused
    }
    for retired in unused { retired.stack.retire() }
  }

  /// Opens the projects that are not open and whose configuration is valid. Runs on the queue.
  private func openWaiting() {
    closeUnused()
    let current = state.withLock { state -> (OperationsService?, ServerAddresses?)? in
      state.isStopped ? nil : (state.operations, state.addresses)
    }
    guard let operations = current?.0, let addresses = current?.1 else { return }
    var opened: [String] = []
    for (id, entry) in state.withLock({ $0.entries }).sorted(by: { $0.key < $1.key }) where entry.stack == nil {
      guard case .success(let project) = entry.source.configuration,
        !state.withLock({ $0.retiring.contains { $0.id == id } })
      else { continue }
      do throws(HearthError) {
        if entry.problem != nil { try entry.source.check() }
        let stack = try ProjectStack(merged(project, id), directory, operations, addresses, places)
        try stack.prepare()
        let isStarted = state.withLock { state in
          state.entries[id]?.stack = stack
          state.entries[id]?.problem = nil
          return state.isStarted
        }
        if isStarted { stack.start(isEager: false) }
        opened.append(id)
      } catch {
        if entry.problem != error.description { refuse(entry.source, error.description, isServed: false) }
        state.withLock { $0.entries[id]?.problem = error.description }
      }
    }
    if !opened.isEmpty { route() }
    for id in opened {
      configuration.log(.info, "project.opened", "project \(id) is served", [("project", .text(id))])
    }
    if state.withLock({ !$0.retiring.isEmpty }) {
      queue.asyncAfter(deadline: .now() + .milliseconds(Self.closingMilliseconds)) { [weak self] in
        self?.openWaiting()
      }
    }
  }

  /// The time between two checks of whether a retired project has completed its requests.
  private static let closingMilliseconds = 100

  /// Closes the retired stacks that no request uses. Runs on the queue.
  private func closeUnused() {
    var closed = state.withLock { state -> [Retired] in
      var closed: [Retired] = []
      for index in state.retiring.indices.reversed() where isKnownUniquelyReferenced(&state.retiring[index].stack) {
        closed.append(state.retiring.remove(at: index))
      }
      return closed
    }
    while !closed.isEmpty {
      let id = closed[closed.count - 1].id
      closed.removeLast().stack.close()
      // An operator may move the data of a project after this message.
      configuration.log(.info, "project.closed", "the files of project \(id) are closed", [("project", .text(id))])
    }
    cancelOverdue()
  }

  /// Ends the requests that a retired stack still has after the time that a stop would wait for them. Otherwise one slow
  /// client could keep a changed project from being served.
  private func cancelOverdue() {
    let now = DispatchTime.now()
    let (overdue, cancel) = state.withLock { state in
      (state.retiring.filter { $0.end <= now }.map { ObjectIdentifier($0.stack) }, state.cancelRequests)
    }
    for stack in overdue { cancel?(stack) }
  }

  /// Returns the quotas of a project: its own, or those of the server if it has none.
  private func quotas(of project: HearthConfiguration) -> QuotaLimits {
    project.quotas.filled(from: state.withLock { $0.quotas } ?? configuration.quotas)
  }

  /// Returns the configuration of the server with the parts of a project. Its files are those of the server if it is
  /// the default project.
  private func merged(_ project: HearthConfiguration, _ id: String) -> HearthConfiguration {
    var merged = configuration
    merged.project = id
    merged.publicURL = project.publicURL ?? configuration.publicURL
    merged.folder = project.folder
    merged.isOneOfSeveral = true
    merged.filesOwner = id == configuration.project ? nil : id
    merged.loadProjects = nil
    merged.databases = project.databases
    merged.rules = project.rules
    merged.storageRules = project.storageRules
    merged.indexes = project.indexes
    merged.enterpriseDatabases = project.enterpriseDatabases
    merged.requiresIndexes = project.requiresIndexes
    merged.accounts = project.accounts
    merged.trustedIssuers = project.trustedIssuers
    merged.onlineIssuers = project.onlineIssuers
    merged.fetchDocument = project.fetchDocument ?? configuration.fetchDocument
    merged.providerFetch = project.providerFetch ?? configuration.providerFetch
    merged.hosting = project.hosting
    merged.loadHosting = nil
    merged.quotas = quotas(of: project)
    merged.loadQuotas = nil
    return merged
  }

  /// Tells the dispatcher which projects it serves.
  private func route() {
    guard let dispatcher else { return }
    let (own, entries) = state.withLock { ($0.own, $0.entries) }
    var routes: [ProjectRoute] = []
    if let own, let id = configuration.project {
      routes.append(ProjectRoute(ProjectNames(id: id, hosts: [], apiKeys: [id]), own.gateway.requests, owner: own))
    }
    for (id, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let names = ProjectNames(id: id, hosts: entry.source.hosts, apiKeys: entry.source.apiKeys)
      if let stack = entry.stack {
        routes.append(ProjectRoute(names, stack.gateway.requests, owner: stack))
      } else {
        routes.append(ProjectRoute(unavailable: names))
      }
    }
    serveConsole(own, entries)
    let problems = dispatcher.serve(routes, standard: configuration.project)
    let known = state.withLock { state in
      defer { state.problems = problems }
      return state.problems
    }
    for problem in problems where !known.contains(problem) { configuration.log(.error, "project.name", problem) }
  }

  /// Tells the dispatcher of the console which projects it serves. A project is named by a path or by `?project=`, never
  /// by the host name, which is that of the console.
  private func serveConsole(_ own: ProjectStack?, _ entries: [String: Entry]) {
    var stacks = entries.sorted { $0.key < $1.key }.compactMap { id, entry in entry.stack.map { (id, $0) } }
    if let own, let id = configuration.project { stacks.insert((id, own), at: 0) }
    let routes = stacks.compactMap { id, stack in
      stack.gateway.console.map { ProjectRoute(ProjectNames(id: id, hosts: [], apiKeys: []), $0, owner: stack) }
    }
    _ = consoleDispatcher?.serve(routes, standard: configuration.project)
  }

  private func refuse(_ source: ProjectSource, _ problem: String, isServed: Bool) {
    let outcome =
      isServed
      ? "its previous configuration stays in force" : "its requests are refused until the configuration is valid"
    configuration.log(
      .error, "project.refused", "project \(source.id): \(problem)\nproject \(source.id): \(outcome)",
      [("project", .text(source.id))])
  }

  private func warnOfUnownedFiles() {
    guard let directory, configuration.project == nil, (try? DataDirectory.hasFiles(in: directory.path)) == true else {
      return
    }
    configuration.log(
      .warn, "project.files",
      "the files in \(DataDirectory.filesFolder(in: directory.path)) belong to no project; name theirs with --project")
  }
}
