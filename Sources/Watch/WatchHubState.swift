import DocumentModel
import DocumentStore
import KeyValue
import QueryEngine

/// The entire state of a hub, used only on its queue.
struct WatchHubState {
  /// The version that the hub has reached. Listeners have been notified of everything up to it.
  private(set) var version = Int64.min
  /// The records of the listeners, or `nil` at the indexes in ``vacant``.
  private var records: [SubscriberRecord?] = []
  private var vacant: [Int] = []
  private var recordIndexes: [ObjectIdentifier: Int] = [:]
  private var index = ViewIndex()
  /// The number of listeners so far.
  private var joinCount = 0
  /// The slot that the last beat served.
  private var currentSlot = 0
  /// The windows to be filled, in turn, and the refills that have started. Some wait for scratch space.
  private var pendingRefills: [(view: QueryView, refill: WindowRefill?, isWaiting: Bool)] = []
  private let options: PlanOptions
  /// Whether a slice of a refill is scheduled.
  private(set) var isFilling = false
  private var allChangesSubscriberCount = 0
  /// The targets whose clients have seen a later version than this hub.
  private var pendingJoins: [PendingJoin] = []

  /// Each listener receives NO_CHANGE once in this many beats, that is, every 32 seconds.
  static let slots = 8
  /// The approximate maximum number of changes handled at once.
  static let stepRowsMax = 4096
  /// The number of slices that a step may run to refill a short window. If they are not enough, the window is filled
  /// in turn.
  private static let refillSlicesMax = 4

  /// Creates a hub without listeners. It plans queries with `options`.
  init(_ options: PlanOptions) { self.options = options }

  // MARK: Subscribers

  /// Handles a request of a listener. With a question, a target joins after ``answer(_:)``.
  mutating func handle(
    _ request: WatchHub.Request, from subscriber: Subscriber, question: Int? = nil, _ reader: inout SnapshotReader
  ) {
    let place = record(of: subscriber)
    switch request {
    case .join(let target, let selection, let dependencies, let atLeast):
      let subscription = Subscription(record: place, target: target)
      if question != nil || atLeast ?? .min > version {
        pendingJoins.append(PendingJoin(subscription, selection, dependencies, atLeast ?? .min, question: question))
      } else {
        join(subscription, selection, dependencies, &reader)
      }
    case .setGuards(let target, let dependencies):
      let subscription = Subscription(record: place, target: target)
      if let index = pendingJoins.firstIndex(where: { $0.subscription == subscription }) {
        pendingJoins[index].dependencies = dependencies
      }
      setGuards(dependencies, of: Subscription(record: place, target: target), &reader)
    case .refresh(let target): notifyJoined(place, [target])
    case .rejoin:
      records[place]?.isDetached = false
      subscriber.clearLagging()
      notifyJoined(place, records[place]?.targets.keys.sorted() ?? [])
    case .leave(let target): leave(Subscription(record: place, target: target))
    case .followAll:
      guard records[place]?.receivesAll == false else { return }
      records[place]?.receivesAll = true
      allChangesSubscriberCount += 1
      // The listener may have missed the commits since it last read.
      subscriber.wake()
    }
  }

  /// Returns the index of a listener's record, and creates the record if necessary.
  private mutating func record(of subscriber: Subscriber) -> Int {
    if let known = recordIndexes[ObjectIdentifier(subscriber)] { return known }
    joinCount += 1
    let record = SubscriberRecord(subscriber, slot: joinCount % Self.slots)
    let place = vacant.popLast() ?? records.count
    if place == records.count { records.append(record) } else { records[place] = record }
    recordIndexes[ObjectIdentifier(subscriber)] = place
    return place
  }

  mutating func remove(_ subscriber: Subscriber) {
    guard let place = recordIndexes.removeValue(forKey: ObjectIdentifier(subscriber)), let record = records[place]
    else { return }
    if record.receivesAll { allChangesSubscriberCount -= 1 }
    for target in record.targets.keys { leave(Subscription(record: place, target: target)) }
    pendingJoins.removeAll { $0.subscription.record == place }
    records[place] = nil
    vacant.append(place)
  }

  /// Adds the targets that wait for a version which the hub has reached. If `isNewest`, no other process has a later
  /// version, so none waits.
  mutating func admit(_ reader: inout SnapshotReader, isNewest: Bool) {
    guard !pendingJoins.isEmpty else { return }
    let version = version
    func mayJoin(_ pending: PendingJoin) -> Bool { isNewest || pending.question == nil && pending.version <= version }
    let admitted = pendingJoins.filter(mayJoin)
    pendingJoins.removeAll(where: mayJoin)
    for pending in admitted { join(pending.subscription, pending.selection, pending.dependencies, &reader) }
  }

  /// Notes that this hub's database has what it was to have when a question was asked.
  mutating func answer(_ question: Int) {
    for index in pendingJoins.indices where pendingJoins[index].question == question {
      pendingJoins[index].question = nil
    }
  }

  /// The questions whose answers targets await.
  var openQuestions: Set<Int> { Set(pendingJoins.compactMap(\.question)) }

  private mutating func join(
    _ subscription: Subscription, _ selection: TargetSelection, _ dependencies: AuthorizationDependencies,
    _ reader: inout SnapshotReader
  ) {
    join(subscription, selection)
    setGuards(dependencies, of: subscription, &reader)
    notifyJoined(subscription.record, [subscription.target])
  }

  private mutating func join(_ subscription: Subscription, _ selection: TargetSelection) {
    var target = SubscriberRecord.Target(selection: selection)
    switch selection {
    case .query(let query):
      target.view = index.view(of: query)
      target.view?.subscriptions.insert(subscription)
    case .documents(let keys): for key in keys { index.change(key) { $0.subscriptions.insert(subscription) } }
    }
    records[subscription.record]?.targets[subscription.target] = target
  }

  private mutating func leave(_ subscription: Subscription) {
    pendingJoins.removeAll { $0.subscription == subscription }
    guard let target = records[subscription.record]?.targets.removeValue(forKey: subscription.target) else { return }
    for key in target.guards { index.change(key) { $0.guarded.remove(subscription) } }
    if case .documents(let keys) = target.selection {
      for key in keys { index.change(key) { $0.subscriptions.remove(subscription) } }
    }
    guard let view = target.view else { return }
    view.subscriptions.remove(subscription)
    if view.subscriptions.isEmpty { index.remove(view) }
  }

  /// Records the documents on which the authorization of a target depends.
  private mutating func setGuards(
    _ dependencies: AuthorizationDependencies, of subscription: Subscription, _ reader: inout SnapshotReader
  ) {
    guard let record = records[subscription.record], let target = record.targets[subscription.target] else { return }
    for key in target.guards { index.change(key) { $0.guarded.remove(subscription) } }
    records[subscription.record]?.targets[subscription.target]?.guards = dependencies.documents.map(\.key)
    for (key, seen) in dependencies.documents {
      index.change(key) { $0.guarded.insert(subscription) }
      // If the document cannot be read, the authorization will find out.
      if (try? reader.document(key)?.updateVersion ?? 0) != seen {
        record.subscriber.requireReauthorization(subscription.target)
      }
    }
  }

  /// Notifies a listener of the version from which the hub follows its targets. Targets whose windows must be filled
  /// first follow later.
  private mutating func notifyJoined(_ place: Int, _ numbers: [Int]) {
    guard let record = records[place], !record.isDetached else { return }
    var targets: [WatchStart.Target] = []
    for number in numbers {
      guard let target = record.targets[number] else { continue }
      let isUnfilled = target.view?.isUnfilled ?? false
      records[place]?.targets[number]?.isJoined = !isUnfilled
      if !isUnfilled {
        targets.append(WatchStart.Target(target: number, documents: target.view?.shownPaths))
      } else if let view = target.view, !pendingRefills.contains(where: { $0.view === view }) {
        pendingRefills.append((view, nil, false))
      }
    }
    if !targets.isEmpty {
      record.subscriber.deliverResponse(.joined(WatchStart(version: version, targets: targets)))
    }
  }

  /// Makes all listeners catch up from the change log.
  private mutating func detachAll() {
    for view in index.allViews { view.reset() }
    for place in records.indices {
      records[place]?.parts = []
      guard records[place]?.isDetached == false else { continue }
      records[place]?.isDetached = true
      records[place]?.subscriber.discardAndMarkLagging()
    }
  }

  // MARK: Windows

  /// Whether there are windows to be filled and no slice is scheduled. If so, marks a slice as scheduled.
  mutating func scheduleRefill() -> Bool {
    guard !isFilling, pendingRefills.contains(where: { !$0.isWaiting }) else { return false }
    isFilling = true
    return true
  }

  /// Continues the refills that wait for scratch space.
  mutating func resumeRefills() {
    for index in pendingRefills.indices { pendingRefills[index].isWaiting = false }
  }

  /// Runs a slice of the refill whose turn it is. When a window is filled, notifies the listeners that wait for it. If
  /// the refill must wait for scratch space, `wake` is called later, on any thread.
  mutating func fillSlice(_ reader: inout SnapshotReader, _ wake: @escaping @Sendable () -> Void) throws {
    isFilling = false
    guard let index = pendingRefills.firstIndex(where: { !$0.isWaiting }) else { return }
    let (view, started, _) = pendingRefills.remove(at: index)
    var begun = started
    guard view.isUnfilled, !view.subscriptions.isEmpty else { return notifyFilled(view) }
    do {
      if let known = begun, try !reader.isReadable(at: known.version) { begun = nil }
      let refill = if let begun { begun } else { try WindowRefill(view.query, reader.snapshot, at: version, options) }
      try refill.slice(reader.snapshot)
      if let contents = refill.contents {
        try install(contents, in: view, &reader)
        if !view.isUnfilled { return notifyFilled(view) }
        pendingRefills.append((view, nil, false))
      } else {
        pendingRefills.append((view, refill, refill.wait(wake)))
      }
    } catch { notifyUnreadable(view, error) }
  }

  private mutating func notifyFilled(_ view: QueryView) {
    for subscription in view.subscriptions
    where records[subscription.record]?.targets[subscription.target]?.isJoined == false {
      notifyJoined(subscription.record, [subscription.target])
    }
  }

  private func notifyUnreadable(_ view: QueryView, _ error: any Error) {
    for subscription in view.subscriptions {
      records[subscription.record]?.subscriber.deliverResponse(.unreadable(target: subscription.target, error))
    }
  }

  /// Notifies the listeners that wait for windows that these cannot be filled.
  mutating func giveUpFilling(_ error: any Error) {
    isFilling = false
    for (view, _, _) in pendingRefills { notifyUnreadable(view, error) }
    pendingRefills = []
  }

  /// Fills the window of a view with results that were read at an earlier version, if they can be updated to the
  /// current version.
  private func install(_ contents: WindowRefill.Contents, in view: QueryView, _ reader: inout SnapshotReader) throws {
    guard contents.version <= version, try reader.isLogged(since: contents.version) else { return }
    view.fill(contents.entries)
    var from = contents.version
    while from < version {
      let changes = try reader.loggedChanges(after: from, rowsMax: Self.stepRowsMax)
      for changed in changes.documents {
        guard let id = changed.id else { continue }
        let key = DocumentKey(uncheckedPath: try reader.collectionPath(changed.collection).appending(id))
        try view.update(key, to: try reader.document(id, in: changed.collection, at: version))
      }
      guard changes.upTo > from else { break }
      from = changes.upTo
    }
    if view.isShort { try refill(view, &reader, at: version) }
  }

  /// Runs the query of a window that has become short. Discards the window if this would take more than a few
  /// slices, or has to wait for scratch space.
  private func refill(_ view: QueryView, _ reader: inout SnapshotReader, at version: Int64) throws {
    guard try reader.isReadable(at: version) else { return view.discardWindow() }
    let refill = try WindowRefill(view.query, reader.snapshot, at: version, options)
    for _ in 0..<Self.refillSlicesMax {
      try refill.slice(reader.snapshot)
      if let contents = refill.contents { return view.fill(contents.entries) }
    }
    view.discardWindow()
  }

  // MARK: Steps

  /// Processes all changes up to the newest version of a snapshot.
  /// - Throws: ``StorageError`` if the newest version cannot be read. After any other error, all listeners catch up.
  mutating func step(_ reader: inout SnapshotReader) throws(StorageError) {
    let newest = try reader.lastVersion()
    guard newest > version else { return }
    defer {
      if allChangesSubscriberCount > 0 {
        for case let record? in records where record.receivesAll { record.subscriber.wake() }
      }
    }
    do {
      // If there are no listeners, there is nothing to do. A cleared database has no log of the time before.
      guard !recordIndexes.isEmpty, try reader.isLogged(since: version) else { return startOver(at: newest) }
      while version < newest {
        let changes = try reader.loggedChanges(after: version, rowsMax: Self.stepRowsMax)
        guard try reader.isReadable(at: changes.upTo) else { return startOver(at: newest) }
        try apply(changes, &reader)
        version = changes.upTo
      }
    } catch {
      // Listeners that this error affects will meet it again while they catch up. The others are not affected.
      startOver(at: newest)
    }
  }

  private mutating func startOver(at newest: Int64) {
    index.forgetNumbers()
    detachAll()
    version = newest
  }

  private mutating func apply(_ changes: LoggedChanges, _ reader: inout SnapshotReader) throws {
    var views: [QueryView] = []
    var touched: [Int] = []
    let isBeforeKnown = try reader.isReadable(at: version)
    for changed in changes.documents {
      let interest = try index.interest(in: changed.collection) { try reader.collectionPath(changed.collection) }
      let hasViews = !interest.sets.isEmpty
      guard hasViews || interest.documents != nil, let id = changed.id else { continue }
      let document = interest.documents?.documents[id]
      guard hasViews || document != nil else { continue }
      let now = try reader.document(id, in: changed.collection, at: changes.upTo)
      let before = hasViews && isBeforeKnown ? try reader.document(id, in: changed.collection, at: version) : nil
      let transition = DocumentTransition(
        DocumentKey(uncheckedPath: interest.path.appending(id)), before: before, isBeforeKnown: isBeforeKnown, now: now)
      for set in interest.sets {
        try set.forEach(transition) { view in
          let wasTouched = view.isTouched
          try view.apply(transition)
          if view.isTouched, !wasTouched { views.append(view) }
        }
      }
      if let document { notify(document, transition, &touched) }
    }
    for view in views {
      if view.isShort { try refill(view, &reader, at: changes.upTo) }
      let delta = try view.finish { key in
        guard let row = try reader.collection(key.collection) else { return nil }
        return try reader.document(key.id, in: row.number, at: changes.upTo)
      }
      if let delta, delta.changes.isEmpty { continue }
      notify(view, delta, &touched)
    }
    for place in touched { records[place]?.deliverBatch(at: changes.upTo) }
  }

  private mutating func notify(
    _ document: DocumentSubscriptions, _ transition: DocumentTransition, _ touched: inout [Int]
  ) {
    for subscription in document.guarded {
      records[subscription.record]?.subscriber.requireReauthorization(subscription.target)
    }
    guard !document.subscriptions.isEmpty else { return }
    let change = transition.document.map(DocumentChange.modified) ?? .deleted
    let delta = TargetDelta([(transition.key, change)])
    for subscription in document.subscriptions { add(delta, for: subscription, &touched) }
  }

  private mutating func notify(_ view: QueryView, _ delta: TargetDelta?, _ touched: inout [Int]) {
    for subscription in view.subscriptions {
      add(delta, for: subscription, &touched)
      if delta == nil { records[subscription.record]?.targets[subscription.target]?.isJoined = false }
    }
  }

  /// Adds changes to the next batch of a listener. `touched` has the indexes of the records with changes.
  private mutating func add(_ delta: TargetDelta?, for subscription: Subscription, _ touched: inout [Int]) {
    let isFirst = records[subscription.record]?.add(delta, for: subscription.target)
    if isFirst == true { touched.append(subscription.record) }
  }

  /// Sends NO_CHANGE to the listeners whose turn it is. Ends the streams that waited too long for a version.
  mutating func beat() {
    for index in pendingJoins.indices { pendingJoins[index].beatsLeft -= 1 }
    for pending in pendingJoins where pending.beatsLeft < 0 {
      records[pending.subscription.record]?.subscriber.deliverResponse(.failed(PendingJoin.failure))
    }
    pendingJoins.removeAll { $0.beatsLeft < 0 }
    currentSlot = (currentSlot + 1) % Self.slots
    for place in records.indices where records[place]?.slot == currentSlot {
      records[place]?.deliver(.noChange(version))
    }
  }

  /// Describes each listener, for diagnostics.
  func descriptions() -> [WatchHub.Description] {
    records.compactMap { $0 }.map { record in
      let (bytes, sent) = record.subscriber.statistics
      let targets = record.targets.sorted { $0.key < $1.key }.map(\.value.selection.text)
      return (
        record.subscriber.name, (record.receivesAll ? ["all changes"] : []) + targets,
        sent == 0 ? 0 : max(0, version - sent), bytes
      )
    }
  }
}
