import Callers
package import DocumentModel
package import RulesEngine
import Synchronization
import WireFormat

/// The active ruleset for files, which may be replaced while requests are evaluated.
///
/// Uploaded rules override those from a file.
package final class FileRules: Sendable {
  /// The name of the service in rules.
  package static let service = "firebase.storage"
  /// The fields of a file that are known only after the whole file has arrived.
  package static let lateFields = ["md5Hash", "crc32c", "etag", "generation"]

  private struct State {
    var file: ActiveRuleset?
    var upload: ActiveRuleset?
  }

  private let state = Mutex(State())

  package init() {}

  /// Copies the current rules of another object.
  package init(copying other: FileRules) {
    let copy = other.state.withLock { $0 }
    state.withLock { $0 = copy }
  }

  /// Sets the rules from a file.
  package func set(_ ruleset: Ruleset) { state.withLock { $0.file = ActiveRuleset(ruleset) } }

  /// Sets uploaded rules, which override those from a file.
  package func upload(_ ruleset: Ruleset) { state.withLock { $0.upload = ActiveRuleset(ruleset) } }

  /// The active rules, or `nil` if no rules are set.
  package var active: ActiveRuleset? { state.withLock { $0.upload ?? $0.file } }
}

/// An operation on a file, or the listing of the files below a prefix, as rules see it.
package struct FileRequest: Sendable {
  package var method: RulesMethod
  package var bucket: String
  /// The name of the object. For a list: the prefix without its last slash.
  package var name: String
  /// The existing object, or `nil` if none exists.
  package var resource: MapValue?
  /// The object after the request, or `nil` if none exists.
  package var newResource: MapValue?

  /// Describes a request without existing or new objects.
  package init(_ method: RulesMethod, bucket: String, name: String) {
    self.method = method
    self.bucket = bucket
    self.name = name
  }
}

/// Proof that a caller may do one operation on one file, or list the files below one prefix. Only
/// ``FilesAccess`` makes it.
package struct FileGrant: ~Copyable, Sendable {
  package let method: RulesMethod
  package let bucket: String
  package let name: String

  fileprivate init(_ method: RulesMethod, bucket: String, name: String) {
    self.method = method
    self.bucket = bucket
    self.name = name
  }
}

/// The reason why a caller gets no ``FileGrant``.
package enum FileDenial: Error {
  /// No rules are loaded, and the caller is not an administrator.
  case withoutRules
  /// The rules deny the operation.
  case denied(RulesMethod)
}

/// The operations on files that are open to one caller. No case is a default: each decision has to handle both.
package enum FilesAccess: Sendable {
  /// No rules apply: the caller is an administrator.
  case unrestricted
  /// Rules decide about each operation.
  case restricted(FileAuthorizer)

  /// Determines the access of a caller. `firestore.get()` in rules reads one snapshot of `database`, regardless of the
  /// number of lookups. Lookups fail if that database does not exist.
  /// - Throws: ``FileDenial/withoutRules`` if no rules are loaded and the caller is not an administrator.
  package init(
    of caller: Caller, by rules: FileRules, _ service: FirestoreService, documentsIn database: DatabaseID?
  ) throws(FileDenial) {
    switch caller {
    case .administrator: self = .unrestricted
    case .user(let auth):
      guard let active = rules.active else { throw .withoutRules }
      self = .restricted(FileAuthorizer(service: service, ruleset: active, auth: auth, database: database))
    }
  }

  /// Authorizes an operation. `describe` is called only if rules apply. The observer of decisions, if one exists, is
  /// notified unless `isObserved` is `false`: the decision is then provisional.
  /// - Throws: ``FileDenial/denied(_:)`` if the rules deny it.
  package func grant(
    _ method: RulesMethod, bucket: String, name: String, isObserved: Bool = true,
    _ describe: (inout FileRequest) -> Void
  ) throws(FileDenial) -> FileGrant {
    switch self {
    case .unrestricted: break
    case .restricted(let authorizer):
      var request = FileRequest(method, bucket: bucket, name: name)
      describe(&request)
      guard authorizer.decide(request, .none, isObserved: isObserved)?.isAllowed ?? false else {
        throw .denied(method)
      }
    }
    return FileGrant(method, bucket: bucket, name: name)
  }
}

/// Authorizes the operations of one caller on files.
package struct FileAuthorizer: Sendable {
  fileprivate let service: FirestoreService
  /// The rules that were active when the request arrived.
  fileprivate let ruleset: ActiveRuleset
  fileprivate let auth: RulesAuth?
  fileprivate let database: DatabaseID?

  /// Whether the rules can read the fields that are known only after the whole file has arrived.
  package var looksAtChecksums: Bool { ruleset.looksAtChecksums }

  /// Evaluates an upload before its ``FileRules/lateFields`` are known. Returns whether the decision is final. It is
  /// not if it depends on them. Cost: traces the decision.
  /// - Throws: ``FileDenial/denied(_:)`` if the rules deny the upload regardless of those fields.
  package func decideEarly(_ request: FileRequest) throws(FileDenial) -> Bool {
    guard let decision = decide(request, .trace, isObserved: false) else { throw .denied(request.method) }
    if decision.isAllowed { return true }
    // `&&` and `||` treat an error as an unknown value. The decision is open only if the rules have read such a
    // field.
    let isOpen =
      ruleset.quotesChecksums
      ? !decision.trace.isEmpty
      : decision.trace.contains { value in
        FileRules.lateFields.contains { value.value.utf8.elementsEqual(Self.missing($0).utf8) }
      }
    guard isOpen else { throw .denied(request.method) }
    return false
  }

  /// Notifies the observer of decisions, if one exists, that an upload was denied before its content arrived.
  package func noteEarlyDenial(_ request: FileRequest) {
    if service.observer != nil { _ = decide(request, .none, isObserved: true) }
  }

  /// The value of a missing field in a trace.
  private static func missing(_ field: String) -> String {
    #"{"undefined":{"causeMessage":"Property \#(field) is undefined on object."}}"#
  }

  /// Evaluates a request, or returns `nil` if the documents cannot be read.
  fileprivate func decide(
    _ request: FileRequest, _ explaining: Decision.Explanation, isObserved: Bool
  ) -> Decision? {
    // Do not open a database for rules that read no documents.
    let decision = try? service.withEvaluation(documentsIn: ruleset.readsDocuments ? database : nil) {
      evaluation, now in
      let decision = decide(request, evaluation, now, explaining)
      if isObserved, let observer = service.observer {
        observer.note(
          AccessRecord(
            database: database, ruleset: ruleset.ruleset, auth: auth, time: now, request: .file(request),
            lookups: evaluation.observedLookups(), isAllowed: decision.isAllowed))
      }
      return decision
    }
    if let decision { service.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied) }
    return decision
  }

  private func decide(
    _ request: FileRequest, _ evaluation: RulesEvaluation, _ now: Timestamp, _ explaining: Decision.Explanation
  ) -> Decision {
    let before = request.resource.map { EncodedFields($0).bytes }
    let after = request.newResource.map { EncodedFields($0).bytes }
    return BorrowedRulesRequest.with(
      request.method, ResourcePath.root, database: DatabaseID.defaultDatabase, auth: auth, time: now
    ) { borrowed in
      Self.withBytes(Array(request.bucket.utf8)) { bucket in
        Self.withBytes(Array(request.name.utf8)) { name in
          Self.withBytes(before) { before in
            Self.withBytes(after) { after in
              var borrowed = borrowed
              borrowed.bucket = bucket
              if let name { borrowed.path = name }
              borrowed.resource = before
              borrowed.newResource = after
              borrowed.lookupsMax = RulesRequest.lookupsMaxPerFile
              return evaluation.evaluator.decide(
                ruleset.ruleset, borrowed, lookups: evaluation.lookups, explaining: explaining)
            }
          }
        }
      }
    }
  }

  private static func withBytes<R>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> R) -> R {
    guard let bytes else { return body(nil) }
    return bytes.withUnsafeBytes { body($0) }
  }
}
