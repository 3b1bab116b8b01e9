import DocumentModel
import DocumentStore
import TestSupport
import WireFormat

@testable import Watch

/// An error with a short text.
private struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Runs the input lines of a transcript on a ``WatchStream`` and returns the whole transcript, with its output.
///
/// | line | meaning |
/// | --- | --- |
/// | `> add 1 query c` | the client adds a target; `once`, `from 5` (a token), `count 3`, `foreign` (an unknown token) may follow |
/// | `> add 1 documents c/x` | the client adds a target of documents |
/// | `> remove 1`, `> bad 1` | the client removes a target, or adds one that cannot be decoded |
/// | `= allow 1`, `= deny 1` | the rules allow or deny target 1; `by time` or `by c/x` names what the decision depends on |
/// | `= allow c/x@7 in 1` | the rules allow a state of a document |
/// | `= paused`, `= done`, `= reset`, `= too old` | the outcome of a slice of a catch-up |
/// | `@ joined 5: 1 2`, `@ batch 6: 1 +c/x -c/y /c/z ~c/w`, `@ no change 7`, `@ lagged` | events of the hub; `+` is modified, `-` removed with its state, `/` removed without, `~` deleted, `1 ?` unknown changes |
/// | `@ reauthorize 1`, `@ unreadable 1` | events of the hub |
/// | `at 30` | the time in seconds |
/// | `! …` | an action: the caller asks the rules or the hub |
/// | `? …` | a step: the caller sends a change, or runs a slice of a catch-up |
/// | `< …` | a message to the client |
struct StreamTranscript: ~Copyable {
  private var stream: WatchStream
  private var lines: [String] = []

  /// Returns the transcript that the inputs in `text` produce.
  static func run(_ text: String, isRestricted: Bool = true) throws -> String {
    guard let database = DatabaseID(project: "p") else { throw Failure("no database") }
    var transcript = StreamTranscript(stream: WatchStream(in: database, .standard, isRestricted: isRestricted))
    transcript.stream.incarnation = 1
    for line in text.split(separator: "\n") where ![">", "=", "@", "a"].allSatisfy({ !line.hasPrefix($0) }) {
      transcript.lines.append(String(line))
      do { try transcript.take(line.split(separator: " ").map(String.init)) } catch let error as WatchError {
        transcript.lines.append("END \(Self.text(error))")
      }
      transcript.drain()
    }
    return transcript.lines.joined(separator: "\n")
  }

  // MARK: Inputs

  private mutating func take(_ words: [String]) throws {
    switch (words[0], words[1]) {
    case (">", "add"): try stream.receive(.add(Self.target(words)))
    case (">", "remove"): try stream.receive(.remove(Int32(words[2]) ?? 0))
    case (">", "bad"): try stream.refuse(Int32(words[2]) ?? 0, because: Failure("not a target"))
    case ("=", "allow"): allow(Array(words[2...]))
    case ("=", "deny"): stream.end(Int(words[2]) ?? 0, because: Failure("denied"))
    case ("=", "paused"): stream.caughtUp(.paused)
    case ("=", "done"): stream.caughtUp(.done)
    case ("=", "reset"): stream.caughtUp(.reset)
    case ("=", "too"): stream.catchUpFailed(CommitError.readTimeTooOld)
    case ("=", "broken"): stream.catchUpFailed(Failure("broken"))
    case ("at", let seconds):
      stream.now = (Int64(seconds) ?? 0) * 1_000_000
      stream.tick()
    case ("@", _): try stream.receive(try Self.event(Array(words[1...])))
    default: throw Failure("unknown line: \(words)")
    }
  }

  private static func target(_ words: [String]) -> ListenTarget {
    let options = Array(words[3...])
    func number(after word: String) -> Int? {
      options.firstIndex(of: word).flatMap { Int(options[$0 + 1]) }
    }
    var selection = ListenTarget.Selection.query(Query(collectionID: options[1]))
    if options[0] == "documents" { selection = .documents(options.dropFirst().map { document($0).path }) }
    var target = ListenTarget(id: Int32(words[2]) ?? 0, selection)
    target.endsWhenCurrent = options.contains("once")
    target.expectedCount = number(after: "count")
    if options.contains("foreign") { target.resumePoint = .token([1, 2, 3]) }
    if let version = number(after: "from") {
      target.resumePoint = .token(ResumeToken(incarnation: 1, version: Int64(version)).bytes)
    }
    return target
  }

  private mutating func allow(_ words: [String]) {
    var dependencies = AuthorizationDependencies()
    if words.last == "time" { dependencies.usesTime = true }
    if let key = words.last, words.contains("by"), key != "time" {
      dependencies.documents = [(document(key), 1)]
    }
    let state = words[0].split(separator: "@").map(String.init)
    guard state.count == 2 else { return stream.authorized(Int(words[0]) ?? 0, dependencies, versions: [:]) }
    stream.authorized(document(state[0]), version: Int64(state[1]) ?? 0, in: Int(words[2]) ?? 0, dependencies)
  }

  private static func event(_ words: [String]) throws -> Subscriber.Event {
    let version = words.lazy.compactMap { Int64($0.filter { $0 != ":" }) }.first ?? 0
    switch words[0] {
    case "joined":
      let targets = words[2...].compactMap { Int($0) }.map { WatchStart.Target(target: $0, documents: nil) }
      return .joined(WatchStart(version: version, targets: targets))
    case "batch":
      var parts: [WatchBatch.Part] = []
      var changes: [TargetDelta.Change] = []
      for word in words[2...].reversed() {
        if let target = Int(word) {
          parts.insert(WatchBatch.Part(target: target, delta: changes.isEmpty ? nil : TargetDelta(changes)), at: 0)
          changes = []
        } else if word != "?" {
          changes.insert(change(word, version), at: 0)
        }
      }
      return .batch(WatchBatch(version: version, parts: parts))
    case "no": return .noChange(version)
    case "lagged": return .lagged
    case "reauthorize": return .needsReauthorization([Int(version)])
    case "unreadable": return .unreadable(target: Int(version), Failure("unreadable"))
    default: throw Failure("unknown event: \(words)")
    }
  }

  private static func change(_ word: String, _ version: Int64) -> TargetDelta.Change {
    let key = document(String(word.dropFirst()))
    let state = WatchedDocument(key, EncodedFields(MapValue([])), createVersion: 1, updateVersion: version)
    switch word.first {
    case "+": return (key, .modified(state))
    case "-": return (key, .removed(state))
    case "/": return (key, .removed(nil))
    default: return (key, .deleted)
    }
  }

  // MARK: Outputs

  /// Records actions and steps until the stream waits for the rules, the hub or the outcome of a slice.
  private mutating func drain() {
    while true {
      while let action = stream.nextAction() {
        lines.append("! " + Self.text(action))
        if case .authorize = action { return }
      }
      switch stream.nextStep() {
      case nil: continue
      case .send(let event)?: lines.append("< " + Self.text(event))
      case .change(let target, let key, let change, _)?:
        let text = "? \(Self.text(change)) \(key) in \(target)"
        let version: Int64? =
          switch change {
          case .modified(let document): document.updateVersion
          case .deleted: 0
          case .removed: nil
          }
        let isOpen = version.map { stream.needsAuthorization(key, version: $0, in: target) } ?? false
        lines.append(text + (isOpen ? ", if allowed" : ""))
        if isOpen { return }
      case .catchUp(let plan)?:
        let origin = plan.origin.map { "from \($0) " } ?? ""
        let count = plan.expectedCount.map { ", \($0) documents" } ?? ""
        return lines.append("? catch up \(plan.target) \(origin)to \(plan.version)\(count)")
      case .takeFromHub?: return
      }
    }
  }

  private static func text(_ action: WatchStream.Action) -> String {
    switch action {
    case .authorize(let target, _): "authorize \(target)"
    case .request(.join(let target, let selection, _, let atLeast)):
      "join \(target) \(selection.text)" + (atLeast.map { " at \($0)" } ?? "")
    case .request(.setGuards(let target, let dependencies)):
      "guard \(target) " + dependencies.documents.map { "\($0.key)" }.joined(separator: " ")
    case .request(.refresh(let target)): "refresh \(target)"
    case .request(.rejoin): "rejoin"
    case .request(.leave(let target)): "leave \(target)"
    case .request(.followAll): "follow all"
    }
  }

  private static func text(_ event: WatchEvent) -> String {
    switch event {
    case .add(let id): "ADD \(id)"
    case .remove(let id, let cause): "REMOVE \(id)" + (cause.map { ": \(text($0))" } ?? "")
    case .reset(let id): "RESET \(id)"
    case .current(let id, let token, let time): "CURRENT \(id) \(position(token, time))"
    case .noChange(let token, let time): "NO_CHANGE \(position(token, time))"
    case .document(let key, _, let target, _): "document \(key) \(target)"
    }
  }

  private static func position(_ token: [UInt8], _ time: Timestamp) -> String {
    ResumeToken(token)?.version == time.microseconds ? "at \(time.microseconds)" : "at an unclear version"
  }

  private static func text(_ change: DocumentChange<WatchedDocument>) -> String {
    switch change {
    case .modified: "modified"
    case .removed(_?): "removed, with its state:"
    case .removed(nil): "removed"
    case .deleted: "deleted"
    }
  }

  private static func text(_ error: any Error) -> String {
    switch error {
    case WatchError.invalidArgument(let text), WatchError.resourceExhausted(let text): text
    default: "\(error)"
    }
  }
}
