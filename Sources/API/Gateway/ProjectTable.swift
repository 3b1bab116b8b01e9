import DatabaseService
package import GatewayCore
import Transport

/// The texts by which requests name a project.
package struct ProjectNames: Sendable {
  package var id: String
  /// Host names that only this project has, without ports.
  package var hosts: [String]
  package var apiKeys: [String]

  /// The default buckets of the project (storage-api.md, section 1).
  var buckets: [String] { ["\(id).appspot.com", "\(id).firebasestorage.app"] }

  package init(id: String, hosts: [String], apiKeys: [String]) {
    self.id = id
    self.hosts = hosts
    self.apiKeys = apiKeys
  }
}

/// The names of a project, and the handler of its requests.
package struct ProjectRoute: Sendable {
  let names: ProjectNames
  let handler: any RequestHandler

  /// Creates the route of a project that is served. Requests under way retain `owner`.
  package init(_ names: ProjectNames, _ requests: RequestDispatcher, owner: any AnyObject & Sendable) {
    self.names = names
    handler = ProjectRequests(requests, owner: owner)
  }

  /// Creates the route of a project whose configuration is not valid. All its requests fail with UNAVAILABLE.
  package init(unavailable names: ProjectNames) {
    self.names = names
    handler = RefusedRequests(.projectUnavailable)
  }
}

/// The projects of a server by their names. Constant; a change of projects makes a new table.
package final class ProjectTable: Sendable {
  /// The project of a request.
  enum Choice {
    case handler(any RequestHandler)
    /// The request names two projects.
    case conflict
    /// The request names a project by an API key that no project has.
    case unknownKey
    /// The request names a project that the server does not have.
    case unknownProject
    case none
  }

  let standard: (any RequestHandler)?
  private let handlers: [any RequestHandler]
  /// The names of each project, in the order of `handlers`.
  private let names: [ProjectNames]
  private let hosts: NameIndex
  private let ids: NameIndex
  private let apiKeys: NameIndex
  private let buckets: NameIndex
  /// The names that several projects have; the first one keeps them.
  let problems: [String]

  /// Creates a table. `standard` is the ID of the project of requests that name none.
  ///
  /// If several projects have a name, it stays with the project that `previous` gives it to, so that a mistake in one
  /// project does not take requests from another. Otherwise the first one gets it.
  init(_ routes: [ProjectRoute], standard: String? = nil, previous: ProjectTable? = nil) {
    handlers = routes.map(\.handler)
    names = routes.map(\.names)
    (hosts, ids, apiKeys, buckets, problems) = Self.index(names, previous)
    self.standard = standard.flatMap { id in routes.first { $0.names.id == id }?.handler }
  }

  /// Returns texts about the names that several projects have.
  package static func problems(of projects: [ProjectNames]) -> [String] { index(projects, nil).problems }

  private static func index(
    _ projects: [ProjectNames], _ previous: ProjectTable?
  ) -> (hosts: NameIndex, ids: NameIndex, apiKeys: NameIndex, buckets: NameIndex, problems: [String]) {
    var problems: [String] = []
    var (hosts, ids, apiKeys, buckets) = (NameIndex(), NameIndex(), NameIndex(), NameIndex())
    for (number, project) in projects.enumerated() {
      ids.insert(project.id, number)
      for bucket in project.buckets { buckets.insert(bucket, number) }
    }
    for isKept in [true, false] {
      for (number, project) in projects.enumerated() {
        func add(_ names: [String], _ what: String, to index: inout NameIndex, _ old: NameIndex?) {
          for name in names {
            let owner = old?.number(of: name).flatMap { previous?.names[$0].id }
            guard (owner == project.id) == isKept else { continue }
            index.insert(name, number)
            guard let other = index.number(of: name), other != number else { continue }
            problems.append(
              "the \(what) '\(name)' of project \(project.id) belongs to the project \(projects[other].id) already, "
                + "and stays with it")
          }
        }
        add(project.hosts.map { $0.lowercased() }, "host name", to: &hosts, previous?.hosts)
        add(project.apiKeys, "API key", to: &apiKeys, previous?.apiKeys)
      }
    }
    return (hosts, ids, apiKeys, buckets, problems)
  }

  /// Returns the project of a request by its head. Cost: a hash of each name in it; no allocation.
  func choose(_ request: borrowing HTTPRequest) -> Choice {
    let (path, query) = request.target.pathAndQuery
    let part = ProjectPath(path)
    var found = Found()
    if let host = request.header("host") ?? request.header(":authority") {
      found.note(hosts.find(Self.name(ofHost: host), ignoresCase: true))
    }
    switch part {
    case .project(let id): found.note(id: find(id))
    case .bucket(let name), .object(let name): found.note(buckets.find(name))
    case .calls, .control, .status, .other: break
    }
    guard !part.isPage else { return choice(found) }
    noteQuery(query, part, &found)
    if let key = request.header("x-goog-api-key"), !key.isEmpty { found.note(key: apiKeys.find(key)) }
    if let prefix = request.header("google-cloud-resource-prefix") { noteResource(prefix, &found) }
    if let parameters = request.header("x-goog-request-params") { noteParameters(parameters, &found) }
    return choice(found)
  }

  /// Returns the project of the service account with an email address.
  func choose(serviceAccount email: UnsafeRawBufferPointer) -> (any RequestHandler)? {
    guard let at = email.firstIndex(of: UInt8(ascii: "@")) else { return nil }
    let domain = UnsafeRawBufferPointer(rebasing: email[(at + 1)...])
    guard let dot = domain.firstIndex(of: UInt8(ascii: ".")) else { return nil }
    return ids.find(UnsafeRawBufferPointer(rebasing: domain[..<dot])).map { handlers[$0] }
  }

  private struct Found {
    var number: Int?
    var isConflict = false
    var hasUnknownKey = false
    var hasUnknownProject = false

    mutating func note(_ other: Int?) {
      guard let other else { return }
      if let number { isConflict = isConflict || number != other } else { number = other }
    }

    mutating func note(id other: Int?) {
      if other == nil { hasUnknownProject = true }
      note(other)
    }

    mutating func note(key other: Int?) {
      if other == nil { hasUnknownKey = true }
      note(other)
    }
  }

  private func choice(_ found: Found) -> Choice {
    if found.isConflict { return .conflict }
    if let number = found.number { return .handler(handlers[number]) }
    // The default project says itself that it does not have another one.
    if found.hasUnknownProject { return standard.map { .handler($0) } ?? .unknownProject }
    return found.hasUnknownKey ? .unknownKey : .none
  }

  /// Finds a project ID, which may be followed by `:verb`.
  private func find(_ id: UnsafeRawBufferPointer) -> Int? {
    if let number = ids.find(id) { return number }
    guard let colon = id.lastIndex(of: UInt8(ascii: ":")) else { return nil }
    return ids.find(UnsafeRawBufferPointer(rebasing: id[..<colon]))
  }

  private func noteQuery(_ query: UnsafeRawBufferPointer, _ part: ProjectPath, _ found: inout Found) {
    var rest = query
    while let parameter = ProjectPath.next(&rest, UInt8(ascii: "&")) {
      if let key = parameter.dropping("key=") {
        if !key.isEmpty { found.note(key: apiKeys.find(key)) }
      } else if case .calls = part, let name = parameter.dropping("database=") {
        noteResource(name, &found)
      } else if part.hasProjectInQuery, let id = parameter.dropping("project=") {
        found.note(id: find(id))
      }
    }
  }

  /// Notes the project of `projects/P/…`, also with encoded slashes.
  private func noteResource(_ name: UnsafeRawBufferPointer, _ found: inout Found) {
    var name = name
    if name.first == UInt8(ascii: "/") { name = UnsafeRawBufferPointer(rebasing: name.dropFirst()) }
    guard let rest = name.dropping("projects/") ?? name.dropping("projects%2F") ?? name.dropping("projects%2f") else {
      return
    }
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "%") } ?? rest.count
    found.note(id: find(UnsafeRawBufferPointer(rebasing: rest[..<end])))
  }

  /// Notes the projects in the value of `x-goog-request-params`, whose form depends on the client (firestore-api.md,
  /// section 1.7).
  private func noteParameters(_ parameters: UnsafeRawBufferPointer, _ found: inout Found) {
    var rest = parameters
    while let parameter = ProjectPath.next(&rest, UInt8(ascii: "&")) {
      if let id = parameter.dropping("project_id=") {
        found.note(id: find(id))
      } else {
        let start = parameter.firstIndex(of: UInt8(ascii: "=")).map { $0 + 1 } ?? 0
        noteResource(UnsafeRawBufferPointer(rebasing: parameter[start...]), &found)
      }
    }
  }

  /// Returns the host of `HOST:PORT`.
  private static func name(ofHost host: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    if host.first == UInt8(ascii: "["), let end = host.firstIndex(of: UInt8(ascii: "]")) {
      return UnsafeRawBufferPointer(rebasing: host[...end])
    }
    var end = host.firstIndex(of: UInt8(ascii: ":")) ?? host.count
    // A fully qualified name may end with a dot.
    if end > 1, host[end - 1] == UInt8(ascii: ".") { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: host[..<end])
  }
}

/// A hash table from names to small numbers. Lookups allocate nothing.
struct NameIndex: Sendable {
  private var names: [(text: [UInt8], number: Int)] = []
  /// Positions in `names`, or -1. The count is a power of two, at least twice that of the names.
  private var slots: [Int32] = Array(repeating: -1, count: 16)

  /// Adds a name, unless it has a number already.
  mutating func insert(_ name: String, _ number: Int) {
    guard self.number(of: name) == nil else { return }
    names.append((Array(name.utf8), number))
    guard names.count * 2 > slots.count else { return place(names.count - 1) }
    slots = Array(repeating: -1, count: slots.count * 2)
    for position in names.indices { place(position) }
  }

  /// Returns the number of a name. Names of hosts must be in lower case.
  func number(of name: String) -> Int? { Array(name.utf8).withUnsafeBytes { find($0) } }

  private mutating func place(_ position: Int) {
    var slot = names[position].text.withUnsafeBytes { Self.hash($0, ignoresCase: false) } & (slots.count - 1)
    while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = Int32(position)
  }

  /// Returns the number of a name. With `ignoresCase`, the index must contain names in lower case.
  func find(_ name: UnsafeRawBufferPointer, ignoresCase: Bool = false) -> Int? {
    var slot = Self.hash(name, ignoresCase: ignoresCase) & (slots.count - 1)
    while slots[slot] >= 0 {
      let known = names[Int(slots[slot])]
      if Self.areEqual(known.text, name, ignoresCase: ignoresCase) { return known.number }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  private static func folded(_ byte: UInt8, _ ignoresCase: Bool) -> UInt8 {
    ignoresCase && byte &- 0x41 < 26 ? byte | 0x20 : byte
  }

  /// FNV-1a. Only the operator adds names, so a client cannot make the table slow.
  private static func hash(_ name: UnsafeRawBufferPointer, ignoresCase: Bool) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in name { hash = (hash ^ UInt32(folded(byte, ignoresCase))) &* 16_777_619 }
    return Int(hash ^ hash >> 16)
  }

  private static func areEqual(_ known: [UInt8], _ name: UnsafeRawBufferPointer, ignoresCase: Bool) -> Bool {
    guard known.count == name.count else { return false }
    for index in known.indices where known[index] != folded(name[index], ignoresCase) { return false }
    return true
  }
}

/// The part of a path that may name a project.
enum ProjectPath {
  /// `/v1/projects/P/…`, also below a host name or another prefix, or `/P/.well-known/…`.
  case project(UnsafeRawBufferPointer)
  /// A path of the APIs for files that contains a bucket.
  case bucket(UnsafeRawBufferPointer)
  /// Any other path. Its first segment is the bucket if it is that of a signed URL.
  case object(UnsafeRawBufferPointer)
  /// The calls of gRPC and WebChannel, which name their database in the head.
  case calls
  /// A call whose query may contain the project: of an administrator, of an app's user, or for public keys.
  case control
  /// `/readyz` or `/metrics`. The query may contain the project whose state an operator sees in the console.
  case status
  case other

  /// Whether no API has the path, so its query and header fields name no project.
  var isPage: Bool {
    switch self {
    case .object, .other: true
    case .project, .bucket, .calls, .control, .status: false
    }
  }

  /// Whether the parameter `project` of the query names the project.
  var hasProjectInQuery: Bool {
    switch self {
    case .control, .status: true
    case .project, .bucket, .object, .calls, .other: false
    }
  }

  /// Reads a path. Cost: compares its first segments.
  init(_ path: UnsafeRawBufferPointer) {
    self = .other
    guard path.first == UInt8(ascii: "/"), path.count > 1 else { return }
    var rest = UnsafeRawBufferPointer(rebasing: path.dropFirst())
    guard var segment = Self.next(&rest) else { return }
    if Self.ends(path, ".well-known/openid-configuration") {
      self = Self.ofDiscovery(segment, rest)
      return
    }
    if Self.ends(segment, ".googleapis.com"), let following = Self.next(&rest) { segment = following }
    if Self.areEqual(segment, "google.firestore.v1.Firestore") {
      self = .calls
      return
    }
    while Self.isPrefix(segment), let following = Self.next(&rest) { segment = following }
    if segment.first == UInt8(ascii: "v"), segment.count > 1, segment[1] &- 0x30 < 10 {
      self = Self.ofVersion(&rest)
    } else if Self.areEqual(segment, "b") {
      self = Self.next(&rest).map { .bucket($0) } ?? .control
    } else if Self.isControl(segment) {
      self = .control
    } else if rest.isEmpty, Self.areEqual(segment, "readyz") || Self.areEqual(segment, "metrics") {
      self = .status
    } else {
      self = .object(segment)
    }
  }

  /// Reads the part after the version.
  private static func ofVersion(_ rest: inout UnsafeRawBufferPointer) -> ProjectPath {
    guard let segment = next(&rest) else { return .control }
    if areEqual(segment, "projects"), let id = next(&rest), !id.isEmpty { return .project(id) }
    if areEqual(segment, "b"), let bucket = next(&rest), !bucket.isEmpty { return .bucket(bucket) }
    return .control
  }

  /// Reads `P/.well-known/…` or `HOST/P/.well-known/…`.
  private static func ofDiscovery(_ first: UnsafeRawBufferPointer, _ rest: UnsafeRawBufferPointer) -> ProjectPath {
    if first.first == UInt8(ascii: ".") { return .control }
    var rest = rest
    guard let second = next(&rest), second.first != UInt8(ascii: ".") else { return .project(first) }
    return .project(second)
  }

  /// The segments that precede a version.
  private static func isPrefix(_ segment: UnsafeRawBufferPointer) -> Bool {
    areEqual(segment, "hearth") || areEqual(segment, "emulator") || areEqual(segment, "storage")
      || areEqual(segment, "upload") || areEqual(segment, "download") || areEqual(segment, "batch")
      || areEqual(segment, "identitytoolkit")
  }

  /// The first segments of calls without a version.
  private static func isControl(_ segment: UnsafeRawBufferPointer) -> Bool {
    areEqual(segment, "token") || areEqual(segment, "robot") || areEqual(segment, "service_accounts")
      || areEqual(segment, "relyingparty")
  }

  private static func areEqual(_ segment: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
    segment.count == text.utf8CodeUnitCount && segment.dropping(text) != nil
  }

  private static func ends(_ text: UnsafeRawBufferPointer, _ end: StaticString) -> Bool {
    text.count >= end.utf8CodeUnitCount
      && areEqual(UnsafeRawBufferPointer(rebasing: text.suffix(end.utf8CodeUnitCount)), end)
  }

  /// Removes and returns the bytes before the next separator, or `nil` at the end.
  static func next(
    _ rest: inout UnsafeRawBufferPointer, _ separator: UInt8 = UInt8(ascii: "/")
  ) -> UnsafeRawBufferPointer? {
    guard !rest.isEmpty else { return nil }
    let end = rest.firstIndex(of: separator) ?? rest.count
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[min(end + 1, rest.count)...]) }
    return UnsafeRawBufferPointer(rebasing: rest[..<end])
  }
}
