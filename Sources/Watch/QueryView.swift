import DocumentModel
import DocumentStore
import Matching
import WireFormat

/// Who follows something: a member of the feed, by one of its targets.
struct Subscription {
  /// Tells followers apart.
  struct ID: Hashable {
    var member: ObjectIdentifier
    var target: Int
  }

  let member: Subscriber
  let target: Int

  var id: ID { ID(member: ObjectIdentifier(member), target: target) }
}

/// A document between two versions, read once for all views that may care.
final class DocumentTransition {
  let key: DocumentKey
  /// How it was, where it was and that is known.
  let before: StoredDocument?
  /// Whether it is known how it was.
  let isBeforeKnown: Bool
  /// How it is; `nil` where it is missing.
  let now: StoredDocument?
  private var made: WatchedDocument?

  init(_ key: DocumentKey, before: StoredDocument?, isBeforeKnown: Bool, now: StoredDocument?) {
    self.key = key
    self.before = before
    self.isBeforeKnown = isBeforeKnown
    self.now = now
  }

  /// How it is, to be shared.
  var document: WatchedDocument? {
    if let made { return made }
    guard let now else { return nil }
    made = WatchedDocument(key, now)
    return made
  }
}

/// What a query's followers are told: evaluated once a step, however many they are.
final class QueryView {
  let query: WatchedQuery
  var subscriptions: [Subscription.ID: Subscription] = [:]
  /// The results, for a query that is kept as a window; `nil` while nobody has fetched them.
  private(set) var window: ResultWindow?
  /// Whether the step under way touched it.
  private(set) var isTouched = false

  private var range: QueryRange?
  private var changes: [TargetDocumentChange] = []
  /// Whether the step hangs on a state that nobody knows any more.
  private var isUnknown = false
  /// The documents of the step, for a window: how they are told where they are shown, and where not.
  private var touched: [ResourcePath: DocumentTransition] = [:]
  private var shownBefore: [ResourcePath] = []
  private var wasPlace: [UInt8] = []
  private var isPlace: [UInt8] = []

  init(_ query: WatchedQuery) {
    self.query = query
    range = query.range
  }

  /// Whether somebody has to fetch the window before the view can be followed.
  var isUnfilled: Bool {
    if case .window = query.shape { window == nil } else { false }
  }

  /// The documents that are shown, where that is known here.
  var members: [ResourcePath]? { window?.shown }

  /// Takes the results that somebody fetched.
  func fill(_ entries: [ResultWindow.Entry]) {
    if case .window(let places) = query.shape { window = ResultWindow(places, entries) }
  }

  /// Forgets the results.
  func empty() { window = nil }

  /// Forgets the results, and a step that was broken off.
  func startOver() {
    window = nil
    endStep()
  }

  private func endStep() {
    isTouched = false
    isUnknown = false
    changes = []
    touched = [:]
    shownBefore = []
  }

  // MARK: A step

  /// Takes a document that changed.
  /// - Throws: ``WireError`` when the stored bytes are no fields.
  func take(_ transition: DocumentTransition) throws(WireError) {
    guard range != nil else { return }
    let was = try place(transition.before, transition.key, &wasPlace)
    let isNow = try place(transition.now, transition.key, &isPlace)
    switch query.shape {
    case .nothing: return
    case .each:
      if isNow, let document = transition.document {
        add(TargetDocumentChange(key: transition.key, state: .matches(try projected(document))))
      } else if was {
        add(TargetDocumentChange(key: transition.key, state: transition.document.map(TargetDocumentChange.State.left) ?? .deleted))
      } else if !transition.isBeforeKnown {
        // It may have been a result; to say that it is none would name a document that never was.
        isTouched = true
        isUnknown = true
      }
    case .whole: if was || isNow || !transition.isBeforeKnown { isTouched = true }
    case .window:
      guard window != nil, was || isNow || !transition.isBeforeKnown else { return }
      if !isTouched {
        isTouched = true
        shownBefore = window?.shown ?? []
      }
      touched[transition.key.path] = transition
      if was {
        window?.remove(place: wasPlace)
      } else if !transition.isBeforeKnown {
        window?.remove(transition.key.path)
      }
      if isNow { window?.insert(ResultWindow.Entry(place: isPlace, path: transition.key.path)) }
    }
  }

  /// What the query shows of a document.
  private func projected(_ document: WatchedDocument) throws(WireError) -> WatchedDocument {
    guard let mask = query.projection else { return document }
    return try document.kept(by: mask)
  }

  private func add(_ change: TargetDocumentChange) {
    isTouched = true
    changes.append(change)
  }

  private func place(
    _ document: StoredDocument?, _ key: DocumentKey, _ place: inout [UInt8]
  ) throws(WireError) -> Bool {
    guard let document else { return false }
    return try range?.place(of: EncodedMap(documentFields: document.fields), at: key.path, into: &place) ?? false
  }

  /// Whether the window must be fetched before ``finish(_:)`` can tell what became of it.
  var isShort: Bool { window?.isShort ?? false }

  /// Ends the step: what became of the results; `nil` where that is not known, and followers have to start anew.
  ///
  /// `read` finds a document that came into the window without having changed.
  func finish(_ read: (DocumentKey) throws -> StoredDocument?) throws -> TargetDelta? {
    defer { endStep() }
    switch query.shape {
    case .nothing, .each: return isUnknown ? nil : TargetDelta(changes)
    case .whole: return nil
    case .window:
      guard let window else { return nil }
      return TargetDelta(try differences(to: window.shown, read))
    }
  }

  private func differences(
    to shown: [ResourcePath], _ read: (DocumentKey) throws -> StoredDocument?
  ) throws -> [TargetDocumentChange] {
    var changes: [TargetDocumentChange] = []
    let now = Set(shown)
    for path in shownBefore where !now.contains(path) {
      let key = DocumentKey(uncheckedPath: path)
      var state = TargetDocumentChange.State.removed
      if let transition = touched[path] {
        if transition.now == nil {
          state = .deleted
        } else if try !place(transition.now, key, &isPlace), let document = transition.document {
          state = .left(document)
        }
      }
      changes.append(TargetDocumentChange(key: key, state: state))
    }
    let before = Set(shownBefore)
    for path in shown {
      let key = DocumentKey(uncheckedPath: path)
      var document = touched[path]?.document
      if document == nil {
        if before.contains(path) { continue }
        document = try read(key).map { WatchedDocument(key, $0) }
      }
      if let document { changes.append(TargetDocumentChange(key: key, state: .matches(try projected(document)))) }
    }
    return changes
  }

  /// Brings a window that was fetched at an earlier version up to a document's state now.
  func bringUp(_ key: DocumentKey, _ now: StoredDocument?) throws(WireError) {
    guard query.scope.contains(key.collection) else { return }
    window?.remove(key.path)
    if try place(now, key, &isPlace) { window?.insert(ResultWindow.Entry(place: isPlace, path: key.path)) }
  }
}
