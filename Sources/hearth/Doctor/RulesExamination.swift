import DatabaseService
import DocumentModel
import HearthServer
import RulesEngine
import WireFormat

/// What `hearth doctor` finds out about rules: it asks them what strangers may do where no document of the app is.
struct RulesExamination {
  let configuration: HearthConfiguration
  /// Microseconds since 1970.
  let now: Int64

  func findings() -> [Finding] {
    var findings: [Finding] = []
    let isEmulator = configuration.mode == .emulator
    if configuration.rules.isEmpty {
      findings.append(
        isEmulator
          ? .warning("rules", "there are none: everybody who reaches the emulator may do everything", "Add --rules FILE.")
          : .warning("rules", "there are none: every request of an app is denied", "Add --rules FILE."))
    }
    for file in configuration.rules { findings += examine(file.path, service: "cloud.firestore", topic: "rules") }
    if let file = configuration.storageRules {
      findings += examine(file, service: FileRules.service, topic: "storage rules")
    }
    return findings
  }

  private func examine(_ file: String, service: String, topic: String) -> [Finding] {
    let ruleset: Ruleset
    do {
      ruleset = try Ruleset(compiling: RulesFile.read(file), service: service)
    } catch let error as RulesetError {
      let count = error.diagnostics.count { $0.severity == .error }
      return [.problem(topic, "\(file) does not compile: \(count) error\(count == 1 ? "" : "s")", "hearth rules check \(file)")]
    } catch { return [.problem(topic, CommandFailure(error).message, "Name a file that can be read.")] }
    guard service == "cloud.firestore" else { return remarks(ruleset, file, topic) }

    let stranger = granted(ruleset, to: nil)
    if !stranger.isEmpty {
      let what = stranger.map(\.rawValue).joined(separator: ", ")
      return [
        .problem(
          topic, "\(file) is open to the world: whoever reaches the port may \(what) documents of any collection",
          "Grant what the app needs, collection by collection.")
      ]
    }
    let guest = configuration.accounts.allowsAnonymous || configuration.accounts.allowsSignUp
    if guest, granted(ruleset, to: Self.guest).contains(where: { $0 != .get && $0 != .list }) {
      return [
        .warning(
          topic, "\(file) lets everybody who makes an account write documents of any collection",
          "Compare request.auth.uid with whose the document is; or --no-sign-up and --no-anonymous.")
      ]
    }
    // Rules of a first month, as consoles offer them, grant everything before a date.
    if !granted(ruleset, to: nil, at: 946_684_800_000_000).isEmpty {
      return [
        .warning(topic, "\(file) grants by a date that has passed: every request is denied now", "Write rules for the app.")
      ]
    }
    return remarks(ruleset, file, topic)
  }

  private func remarks(_ ruleset: Ruleset, _ file: String, _ topic: String) -> [Finding] {
    let count = ruleset.diagnostics.count
    guard count > 0 else { return [.ok(topic, "\(file) compiles")] }
    let text = "\(file) compiles, with \(count) remark\(count == 1 ? "" : "s")"
    return [.warning(topic, text, "hearth rules check \(file)")]
  }

  private static let guest = RulesAuth(
    uid: "wZ3kTqvB7dMnXcYhRjL5", claims: MapValue([("sub", .string("wZ3kTqvB7dMnXcYhRjL5"))]))

  /// What is granted on documents of collections that no app has, at two depths: only rules for any collection do so.
  private func granted(_ ruleset: Ruleset, to auth: RulesAuth?, at time: Int64? = nil) -> [RulesMethod] {
    let collections = ["x7qk-doctor", "x7qk-doctor/v4/p9wz-doctor"].compactMap { try? ResourcePath($0) }
    let fields = EncodedFields(MapValue([("doctor", .integer(1))]))
    return RulesMethod.allCases.filter { method in
      collections.contains { collection in
        let id = String(decoding: collection.lastSegment, as: UTF8.self)
        let path = method == .list ? collection : collection.appending("u2")
        var request = RulesRequest(method, path, auth: auth, time: Timestamp(uncheckedMicroseconds: time ?? now))
        switch method {
        case .list: request.query = Query(parent: collection.parent, collectionID: id)
        case .get, .delete: request.resource = fields
        case .create: request.newResource = fields
        case .update: (request.resource, request.newResource) = (fields, fields)
        }
        return ruleset.decide(request).isAllowed
      }
    }
  }
}
