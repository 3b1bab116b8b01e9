import DocumentModel
import DocumentStore
import Matching
import WireFormat

/// The changes in a query's results: evaluated once a step, regardless of the number of subscriptions.
final class QueryView {
  let query: WatchedQuery
  var subscriptions: Set<Subscription> = []
  /// The results of a query that is kept as a window; `nil` until they have been read.
  private(set) var window: ResultWindow?
  /// Whether the current step may have changed the results.
  private(set) var isTouched = false

  private var range: QueryRange?
  private var changes: [TargetDelta.Change] = []
  /// Whether the changes of the current step depend on a previous state that the history no longer contains.
  private var isUnknown = false
  /// For a window: the documents that the current step changed, whether shown or not.
  private var touched: [ResourcePath: DocumentTransition] = [:]
  private var shownBefore: [ResourcePath] = []
  private var placeBefore: [UInt8] = []
  private var placeNow: [UInt8] = []

  init(_ query: WatchedQuery) {
    self.query = query
    range = query.range
  }

  /// Whether the results must be read before changes of the view can be computed.
  var isUnfilled: Bool {
    if case .window = query.shape { window == nil } else { false }
  }

  /// The documents that are shown, if the view knows them.
  var shownPaths: [ResourcePath]? { window?.shown }

  /// Sets the results of the window.
  func fill(_ entries: [ResultWindow.Entry]) {
    if case .window(let places) = query.shape { window = ResultWindow(places, entries) }
  }

  /// Discards the results.
  func discardWindow() { window = nil }

  /// Discards the results and any incomplete step.
  func reset() {
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

  /// Processes a changed document.
  /// - Throws: ``WireError`` if the stored bytes are malformed.
  func apply(_ transition: DocumentTransition) throws(WireError) {
    guard range != nil else { return }
    let was = try place(transition.before, transition.key, &placeBefore)
    let isNow = try place(transition.now, transition.key, &placeNow)
    switch query.shape {
    case .nothing: return
    case .each:
      if isNow, let document = transition.document {
        add(transition.key, .modified(try projected(document)))
      } else if was {
        add(transition.key, transition.document.map(DocumentChange.removed) ?? .deleted)
      } else if !transition.isBeforeKnown {
        // It may have been a result. Reporting it as removed could reveal a document that never was one.
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
        window?.remove(place: placeBefore)
      } else if !transition.isBeforeKnown {
        window?.remove(transition.key.path)
      }
      if isNow { window?.insert(ResultWindow.Entry(place: placeNow, path: transition.key.path)) }
    }
  }

  /// Returns the document with only the fields that the query selects.
  private func projected(_ document: WatchedDocument) throws(WireError) -> WatchedDocument {
    guard let mask = query.projection else { return document }
    return try document.kept(by: mask)
  }

  private func add(_ key: DocumentKey, _ change: DocumentChange<WatchedDocument>) {
    isTouched = true
    changes.append((key, change))
  }

  private func place(
    _ document: StoredDocument?, _ key: DocumentKey, _ place: inout [UInt8]
  ) throws(WireError) -> Bool {
    guard let document else { return false }
    return try range?.place(of: EncodedMap(documentFields: document.fields), at: key.path, into: &place) ?? false
  }

  /// Whether the window must be refilled before ``finish(_:)`` can determine the changes.
  var isShort: Bool { window?.isShort ?? false }

  /// Ends the step. Returns the changes of the results, or `nil` if these are not known and listeners must refresh
  /// the target.
  ///
  /// `read` finds a document that entered the window without having changed.
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
  ) throws -> [TargetDelta.Change] {
    var changes: [TargetDelta.Change] = []
    let now = Set(shown)
    for path in shownBefore where !now.contains(path) {
      let key = DocumentKey(uncheckedPath: path)
      var change = DocumentChange<WatchedDocument>.removed(nil)
      if let transition = touched[path] {
        if transition.now == nil {
          change = .deleted
        } else if try !place(transition.now, key, &placeNow) {
          change = .removed(transition.document)
        }
      }
      changes.append((key, change))
    }
    let before = Set(shownBefore)
    for path in shown {
      let key = DocumentKey(uncheckedPath: path)
      var document = touched[path]?.document
      if document == nil {
        if before.contains(path) { continue }
        document = try read(key).map { WatchedDocument(key, $0) }
      }
      if let document { changes.append((key, .modified(try projected(document)))) }
    }
    return changes
  }

  /// Updates a window that was read at an earlier version with the current state of a document.
  func update(_ key: DocumentKey, to now: StoredDocument?) throws(WireError) {
    guard query.scope.contains(key.collection) else { return }
    window?.remove(key.path)
    if try place(now, key, &placeNow) { window?.insert(ResultWindow.Entry(place: placeNow, path: key.path)) }
  }
}
