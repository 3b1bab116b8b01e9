import WireFormat

/// Reads one entry of `hosting`. A part that is not valid is left out and listed as a problem.
struct HostingEntryReader {
  private(set) var entry = HostingEntry()
  private let place: String

  /// Reads an object.
  init(_ object: JSONValue, _ place: String) {
    self.place = place
    guard case .object(var members) = object.kind else { return }
    while let (key, value) = members.next() {
      let name = key.text
      switch name {
      case "public":
        if let text = text(value, name), !text.isEmpty { entry.folder = text }
      case "target", "site":
        if let text = text(value, name) { entry.names.append(text) }
      case "ignore": readIgnored(value)
      case "cleanUrls": if let flag = flag(value, name) { entry.rules.hasCleanURLs = flag }
      case "trailingSlash":
        if let flag = flag(value, name) { entry.rules.trailingSlash = flag ? .always : .never }
      case "i18n": readTranslations(value)
      case "redirects": readRules(value, name) { $0.redirect($1, $2) }
      case "rewrites": readRules(value, name) { $0.rewrite($1, $2) }
      case "headers": readRules(value, name) { $0.header($1, $2) }
      // Firebase's tools use other members when they deploy.
      default: break
      }
    }
  }

  private mutating func report(_ key: String, _ text: String) {
    entry.problems.append(HostingProblem(key: "\(place).\(key)", text: text))
  }

  private mutating func text(_ value: JSONValue, _ key: String) -> String? {
    if case .string(let bytes) = value.kind { return String(decoding: bytes, as: UTF8.self) }
    report(key, "must be a string")
    return nil
  }

  private mutating func flag(_ value: JSONValue, _ key: String) -> Bool? {
    if case .boolean(let flag) = value.kind { return flag }
    report(key, "must be true or false")
    return nil
  }

  private mutating func readIgnored(_ value: JSONValue) {
    guard case .array(var elements) = value.kind else { return report("ignore", "must be an array of strings") }
    entry.rules.ignored = IgnoredFiles()
    var number = 0
    while let element = elements.next() {
      let key = "ignore[\(number)]"
      number += 1
      guard number <= HostingLimits.expressionsMax else {
        return report("ignore", "has more than \(HostingLimits.expressionsMax) patterns; the others are not in force")
      }
      guard let text = text(element, key) else { continue }
      do throws(PathPattern.Failure) { try entry.rules.ignored.append(text) } catch { report(key, error.text) }
    }
  }

  private mutating func readTranslations(_ value: JSONValue) {
    guard case .object(var members) = value.kind else { return report("i18n", "must be an object with \"root\"") }
    while let (key, value) = members.next() {
      guard "root" ~= key, let text = text(value, "i18n.root") else { continue }
      guard var path = SitePath(text) else { return report("i18n.root", "must be the path of a folder of the site") }
      if path.hasTrailingSlash { path = path.dropping(1) }
      entry.rules.translations = path.isRoot ? [] : path.bytes
    }
  }

  /// Reads a list of rules.
  private mutating func readRules(
    _ value: JSONValue, _ name: String, _ read: (inout HostingEntryReader, RuleMembers, PathPattern) -> Void
  ) {
    guard case .array(var elements) = value.kind else { return report(name, "must be an array of objects") }
    var (number, expressions) = (0, 0)
    while let element = elements.next() {
      let key = "\(name)[\(number)]"
      guard number < HostingLimits.rulesMax else {
        return report(name, "has more than \(HostingLimits.rulesMax) rules; the others are not in force")
      }
      number += 1
      guard case .object(let members) = element.kind else {
        report(key, "must be an object")
        continue
      }
      let rule = RuleMembers(members, key)
      if rule.regex != nil { expressions += 1 }
      guard expressions <= HostingLimits.expressionsMax || rule.regex == nil else {
        report("\(key).regex", "follows \(HostingLimits.expressionsMax) others, so it is not in force; use globs")
        continue
      }
      guard let pattern = pattern(rule, hasCaptures: name == "redirects") else { continue }
      read(&self, rule, pattern)
    }
  }

  private mutating func pattern(_ rule: RuleMembers, hasCaptures: Bool) -> PathPattern? {
    do throws(PathPattern.Failure) {
      switch (rule.glob, rule.regex) {
      case (let glob?, nil): return try PathPattern(glob: glob.text, hasCaptures: hasCaptures)
      case (nil, let regex?): return try PathPattern(regex: regex)
      case (nil, nil): report(rule.key, "needs \"source\" or \"regex\"")
      default: report(rule.key, "has both \"source\" and \"regex\"; use one of them")
      }
    } catch { report("\(rule.key).\(rule.glob?.name ?? "regex")", error.text) }
    return nil
  }

  private mutating func redirect(_ rule: RuleMembers, _ pattern: PathPattern) {
    let key = rule.key
    guard let destination = rule.destination, !destination.isEmpty else {
      return report("\(key).destination", "must be a path or a URL")
    }
    let status = rule.type ?? .some(301)
    guard let status, [301, 302, 303, 307, 308].contains(status) else {
      return report("\(key).type", "must be 301, 302, 303, 307 or 308")
    }
    entry.rules.redirects.append(
      SiteRules.Redirect(target: RedirectTarget(destination, source: pattern), status: status), when: pattern)
  }

  private mutating func rewrite(_ rule: RuleMembers, _ pattern: PathPattern) {
    let key = rule.key
    if let service = rule.service {
      report(key, "sends requests to \"\(service)\", which hearth does not have; they get status 501")
      return entry.rules.rewrites.append(.unserved(service), when: pattern)
    }
    guard let path = rule.destination.flatMap({ SitePath($0) }) else {
      return report("\(key).destination", "must be the path of a file of the site")
    }
    entry.rules.rewrites.append(.file(path), when: pattern)
  }

  private mutating func header(_ rule: RuleMembers, _ pattern: PathPattern) {
    guard case .array(var elements)? = rule.headers?.kind else {
      return report("\(rule.key).headers", "must be an array of objects with \"key\" and \"value\"")
    }
    var headers: [SiteHeader] = []
    var number = 0
    while let element = elements.next() {
      let field = RuleMembers.Field(element)
      if let name = field.name, let value = field.value, let header = SiteHeader(name: name, value: value) {
        headers.append(header)
      } else {
        report(
          "\(rule.key).headers[\(number)]",
          "is not a header field that a configuration can set; the field is left out")
      }
      number += 1
    }
    entry.rules.headers.append(headers, when: pattern)
  }
}

/// The members of one rule.
private struct RuleMembers {
  /// The place of the rule in the entry.
  let key: String
  private(set) var glob: (name: String, text: String)?
  private(set) var regex: String?
  private(set) var destination: String?
  /// The status, or `nil` inside if it is not a whole number.
  private(set) var type: Int??
  private(set) var headers: JSONValue?
  /// The member that names a service instead of a file.
  private(set) var service: String?

  init(_ members: JSONValue.Members, _ key: String) {
    self.key = key
    var members = members
    while let (name, value) = members.next() {
      let name = name.text
      switch name {
      case "source", "glob": if let text = Self.text(value) { glob = (name, text) }
      case "regex": regex = Self.text(value)
      case "destination": destination = Self.text(value)
      case "type":
        if case .integer(let number) = value.kind { type = .some(Int(number)) } else { type = .some(nil) }
      case "headers": headers = value
      case "function", "run", "dynamicLinks": service = name
      default: break
      }
    }
  }

  static func text(_ value: JSONValue) -> String? {
    if case .string(let bytes) = value.kind { String(decoding: bytes, as: UTF8.self) } else { nil }
  }

  /// A header field of a rule.
  struct Field {
    private(set) var name: String?
    private(set) var value: String?

    init(_ object: JSONValue) {
      guard case .object(var members) = object.kind else { return }
      while let (key, member) = members.next() {
        if "key" ~= key { name = text(member) }
        if "value" ~= key { value = text(member) }
      }
    }
  }
}
