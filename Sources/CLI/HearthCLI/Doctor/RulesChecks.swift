import DatabaseService
import DocumentModel
import HearthServer
import RulesEngine
import WireFormat

/// Checks the rules. It evaluates requests of unauthenticated and unknown users for documents and files that no app
/// has.
struct RulesChecks {
  let configuration: HearthConfiguration
  /// Microseconds since 1970.
  let now: Int64

  /// The remedy for rules that have expired.
  private static let expiryAdvice = "Replace them by rules for the app."

  /// Returns the findings that matter when a server starts. An emulator may have rules that grant everything.
  func urgent() -> [Finding] {
    findings().filter { finding in
      guard finding.level != .ok, finding.advice?.hasPrefix("hearth rules check") != true else { return false }
      return configuration.mode == .production || finding.advice == Self.expiryAdvice
    }
  }

  func findings() -> [Finding] {
    var findings: [Finding] = []
    let isEmulator = configuration.mode == .emulator
    if configuration.rules.isEmpty {
      findings.append(
        isEmulator
          ? .warning(
            "rules", "no rules are set: every client that reaches the emulator is an administrator",
            "Add --rules FILE.")
          : .warning("rules", "no rules are set: every request of an app is denied", "Add --rules FILE."))
    }
    for file in configuration.rules { findings += checks(file.path, service: "cloud.firestore", topic: "rules") }
    if let file = configuration.storageRules {
      findings += checks(file, service: FileRules.service, topic: "storage rules")
    }
    return findings
  }

  private func checks(_ file: String, service: String, topic: String) -> [Finding] {
    let text: String
    do { text = try RulesFile.read(file) } catch {
      return [.problem(topic, CommandFailure(error).message, "Name a readable file.")]
    }
    return findings(of: text, named: file, service: service, topic: topic, advice: "hearth rules check \(file)")
  }

  /// Checks the text of rules. `advice` says how to see or correct the mistakes of the compiler's report.
  func findings(
    of text: String, named file: String, service: String, topic: String, advice: String
  ) -> [Finding] {
    let ruleset: Ruleset
    do throws(RulesetError) { ruleset = try Ruleset(compiling: text, service: service) } catch {
      let all = Ruleset.diagnostics(of: text, at: Timestamp(uncheckedMicroseconds: now))
      let count = all.count { $0.severity == .error }
      return [.problem(topic, "\(file) does not compile: \(CountText.of(count, "error"))", advice)]
    }
    let isOfFiles = service == FileRules.service
    let objects = isOfFiles ? "files of any name" : "documents of any collection"
    let stranger = granted(ruleset, isOfFiles, to: nil)
    if !stranger.isEmpty {
      let what = stranger.map(\.rawValue).joined(separator: ", ")
      return [
        .problem(
          topic, "\(file) is open to the world: every client that reaches the port may \(what) \(objects)",
          "Grant only the access that the app needs, \(isOfFiles ? "folder by folder" : "collection by collection").")
      ]
    }
    let guest = configuration.accounts.allowsAnonymous || configuration.accounts.allowsSignUp
    if guest, granted(ruleset, isOfFiles, to: Self.guest).contains(where: { $0 != .get && $0 != .list }) {
      return [
        .warning(
          topic, "\(file) lets every new account write \(objects)",
          "Compare request.auth.uid with the owner of the \(isOfFiles ? "file" : "document"), "
            + "or set --no-sign-up and --no-anonymous.")
      ]
    }
    // The initial rules that consoles offer grant everything until a date.
    if !granted(ruleset, isOfFiles, to: nil, at: 946_684_800_000_000).isEmpty {
      let text = "\(file) grants access until a date that has passed: now every request is denied"
      return [.warning(topic, text, Self.expiryAdvice)]
    }
    let remarkCount = ruleset.diagnostics.count
    guard remarkCount > 0 else { return [.ok(topic, "\(file) compiles")] }
    return [.warning(topic, "\(file) compiles, with \(CountText.of(remarkCount, "remark"))", advice)]
  }

  private static let guest = RulesAuth(
    uid: "wZ3kTqvB7dMnXcYhRjL5", claims: MapValue([("sub", .string("wZ3kTqvB7dMnXcYhRjL5"))]))

  /// Returns the methods that the rules grant for documents or files that no app has. Only rules that match any
  /// collection, or files of any name, grant some.
  private func granted(
    _ ruleset: Ruleset, _ isOfFiles: Bool, to auth: RulesAuth?, at time: Int64? = nil
  ) -> [RulesMethod] {
    let time = Timestamp(uncheckedMicroseconds: time ?? now)
    return RulesMethod.allCases.filter { method in
      isOfFiles
        ? grantsFiles(ruleset, method, to: auth, at: time) : grantsDocuments(ruleset, method, to: auth, at: time)
    }
  }

  /// Returns whether a method is granted in collections that no app has, at two depths.
  private func grantsDocuments(
    _ ruleset: Ruleset, _ method: RulesMethod, to auth: RulesAuth?, at time: Timestamp
  ) -> Bool {
    let collections = ["x7qk-doctor", "x7qk-doctor/v4/p9wz-doctor"].compactMap { try? ResourcePath($0) }
    let fields = EncodedFields(MapValue([("doctor", .integer(1))]))
    return collections.contains { collection in
      let id = String(decoding: collection.lastSegment, as: UTF8.self)
      let path = method == .list ? collection : collection.appending("u2")
      var request = RulesRequest(method, path, auth: auth, time: time)
      switch method {
      case .list: request.query = Query(parent: collection.parent, collectionID: id)
      case .get, .delete: request.resource = fields
      case .create: request.newResource = fields
      case .update: (request.resource, request.newResource) = (fields, fields)
      }
      return ruleset.decide(request).isAllowed
    }
  }

  /// Returns whether a method is granted for files that no app has, at two depths, in the project's bucket and in one
  /// that no app has. Uploads are small pictures, so that rules that only restrict type or size grant them.
  private func grantsFiles(_ ruleset: Ruleset, _ method: RulesMethod, to auth: RulesAuth?, at time: Timestamp) -> Bool {
    let evaluator = Evaluator()
    return ["x7qk-doctor", "\(configuration.project ?? "demo").appspot.com"].contains { bucket in
      ["x7qk-doctor/u2", "x7qk-doctor/v4/p9wz-doctor/u2"].contains { name in
        let fields = EncodedFields(file(bucket, name, time))
        var request = RulesRequest(method, ResourcePath(uncheckedBytes: Array(name.utf8)), auth: auth, time: time)
        if method != .list && method != .create { request.resource = fields }
        if method == .create || method == .update { request.newResource = fields }
        request.lookupsMax = RulesRequest.lookupsMaxPerFile
        return request.withBorrowed { borrowed in
          Array(bucket.utf8).withUnsafeBytes { bucket in
            var borrowed = borrowed
            borrowed.bucket = bucket
            return evaluator.decide(ruleset, borrowed).isAllowed
          }
        }
      }
    }
  }

  private func file(_ bucket: String, _ name: String, _ time: Timestamp) -> MapValue {
    MapValue([
      ("name", .string(name)), ("bucket", .string(bucket)), ("size", .integer(1024)),
      ("contentType", .string("image/png")), ("contentDisposition", .string("inline")),
      ("contentEncoding", .string("identity")), ("contentLanguage", .null), ("metadata", .map(MapValue())),
      ("timeCreated", .timestamp(time)), ("updated", .timestamp(time)), ("generation", .integer(1)),
      ("metageneration", .integer(1)),
    ])
  }
}
