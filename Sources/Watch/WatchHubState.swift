import DocumentModel
import DocumentStore
import KeyValue

/// The entire state of a hub, used only on its queue.
struct WatchHubState {
  /// The version that the hub has reached. Listeners have been notified of everything up to it.
  private(set) var version = Int64.min
  private(set) var subscribers: [ObjectIdentifier: Subscriber] = [:]
  private var index = ViewIndex()
  /// The number of listeners so far.
  private var joinCount = 0
  /// The slot that the last beat served.
  private var currentSlot = 0
  /// The windows to be filled, in turn, and the refills that have started.
  private var pendingRefills: [(view: QueryView, refill: WindowRefill?)] = []
  /// Whether a slice of a refill is scheduled.
  private(set) var isFilling = false
  private var allChangesSubscriberCount = 0

  /// Each listener receives NO_CHANGE once in this many beats, that is, every 32 seconds.
  static let slots = 8
  /// The approximate maximum number of changes handled at once.
  static let stepRowsMax = 4096
  /// The number of slices that a step may run to refill a short window. If they are not enough, the window is filled
  /// in turn.
  private static let refillSlicesMax = 4

  // MARK: Subscribers

  /// Returns the subscriber of a mailbox, and creates it if necessary.
  mutating func subscriber(for mailbox: WatchMailbox) -> Subscriber {
    if let known = subscribers[ObjectIdentifier(mailbox)] { return known }
    joinCount += 1
    let subscriber = Subscriber(mailbox, slot: joinCount % Self.slots)
    subscribers[ObjectIdentifier(mailbox)] = subscriber
    return subscriber
  }

  /// Wakes a listener after every commit from now on.
  mutating func subscribeToAll(_ mailbox: WatchMailbox) {
    let subscriber = subscriber(for: mailbox)
    guard !subscriber.receivesAll else { return }
    subscriber.receivesAll = true
    allChangesSubscriberCount += 1
    // The listener may have missed the commits since it last read.
    mailbox.wake()
  }

  mutating func remove(_ mailbox: WatchMailbox) {
    guard let subscriber = subscribers.removeValue(forKey: ObjectIdentifier(mailbox)) else { return }
    if subscriber.receivesAll { allChangesSubscriberCount -= 1 }
    for target in subscriber.targets.keys { remove(target, from: subscriber) }
  }

  mutating func add(_ number: Int, _ selection: TargetSelection, to subscriber: Subscriber) {
    let subscription = Subscription(subscriber: subscriber, target: number)
    switch selection {
    case .query(let query):
      let view = index.view(of: query)
      view.subscriptions[subscription.id] = subscription
      subscriber.targets[number] = Subscriber.Target(selection: selection, view: view)
    case .documents(let keys):
      for key in keys { index.change(key) { $0.subscriptions[subscription.id] = subscription } }
      subscriber.targets[number] = Subscriber.Target(selection: selection, view: nil)
    }
  }

  mutating func remove(_ number: Int, from subscriber: Subscriber) {
    guard let target = subscriber.targets.removeValue(forKey: number) else { return }
    let id = Subscription(subscriber: subscriber, target: number).id
    for key in target.guards { index.change(key) { $0.guarded[id] = nil } }
    switch target.selection {
    case .documents(let keys): for key in keys { index.change(key) { $0.subscriptions[id] = nil } }
    case .query:
      guard let view = target.view else { return }
      view.subscriptions[id] = nil
      if view.subscriptions.isEmpty { index.remove(view) }
    }
  }

  /// Records the documents on which the authorization of a target depends. If the version of one differs from the
  /// version that the authorization read, the target must be authorized again.
  mutating func setGuards(
    _ guards: [(key: DocumentKey, version: Int64)], of number: Int, _ subscriber: Subscriber,
    _ reader: inout SnapshotReader
  ) {
    let subscription = Subscription(subscriber: subscriber, target: number)
    for key in subscriber.targets[number]?.guards ?? [] { index.change(key) { $0.guarded[subscription.id] = nil } }
    subscriber.targets[number]?.guards = guards.map(\.key)
    for (key, seen) in guards {
      index.change(key) { $0.guarded[subscription.id] = subscription }
      // If the document cannot be read, the authorization will find out.
      if (try? reader.document(key)?.updateVersion ?? 0) != seen { subscriber.mailbox.requireReauthorization(number) }
    }
  }

  /// Notifies a listener of the version from which the hub follows its targets. Targets whose windows must be filled
  /// first follow later.
  mutating func notifyJoined(_ subscriber: Subscriber, _ numbers: [Int]) {
    guard !subscriber.isDetached else { return }
    var targets: [WatchStart.Target] = []
    for number in numbers {
      guard let view = subscriber.targets[number]?.view else {
        targets.append(WatchStart.Target(target: number, documents: nil))
        subscriber.targets[number]?.isJoined = true
        continue
      }
      subscriber.targets[number]?.isJoined = !view.isUnfilled
      if view.isUnfilled {
        if !pendingRefills.contains(where: { $0.view === view }) { pendingRefills.append((view, nil)) }
      } else {
        targets.append(WatchStart.Target(target: number, documents: view.shownPaths))
      }
    }
    if !targets.isEmpty { subscriber.mailbox.deliverResponse(.joined(WatchStart(version: version, targets: targets))) }
  }

  /// Makes all listeners catch up from the change log.
  private func detachAll() {
    for view in index.allViews { view.reset() }
    for subscriber in subscribers.values {
      subscriber.parts = []
      if !subscriber.isDetached { subscriber.detach() }
    }
  }

  // MARK: Windows

  /// Whether there are windows to be filled and no slice is scheduled. If so, marks a slice as scheduled.
  mutating func scheduleRefill() -> Bool {
    guard !pendingRefills.isEmpty, !isFilling else { return false }
    isFilling = true
    return true
  }

  /// Runs a slice of the refill whose turn it is. When a window is filled, notifies the listeners that wait for it.
  mutating func fillSlice(_ reader: inout SnapshotReader) throws {
    isFilling = false
    guard !pendingRefills.isEmpty else { return }
    let (view, started) = pendingRefills.removeFirst()
    var begun = started
    guard view.isUnfilled, !view.subscriptions.isEmpty else { return notifyFilled(view) }
    do {
      if let known = begun, try !reader.isReadable(at: known.version) { begun = nil }
      let refill = if let begun { begun } else { try WindowRefill(view.query, reader.snapshot, at: version) }
      try refill.slice(reader.snapshot)
      if let contents = refill.contents {
        try install(contents, in: view, &reader)
        if !view.isUnfilled { return notifyFilled(view) }
        pendingRefills.append((view, nil))
      } else {
        pendingRefills.append((view, refill))
      }
    } catch { notifyUnreadable(view, error) }
  }

  private mutating func notifyFilled(_ view: QueryView) {
    for subscription in view.subscriptions.values
    where subscription.subscriber.targets[subscription.target]?.isJoined == false {
      notifyJoined(subscription.subscriber, [subscription.target])
    }
  }

  private func notifyUnreadable(_ view: QueryView, _ error: any Error) {
    for subscription in view.subscriptions.values {
      subscription.subscriber.mailbox.deliverResponse(.unreadable(target: subscription.target, error))
    }
  }

  /// Notifies the listeners that wait for windows that these cannot be filled.
  mutating func giveUpFilling(_ error: any Error) {
    isFilling = false
    for (view, _) in pendingRefills { notifyUnreadable(view, error) }
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
  /// slices.
  private func refill(_ view: QueryView, _ reader: inout SnapshotReader, at version: Int64) throws {
    guard try reader.isReadable(at: version) else { return view.discardWindow() }
    let refill = try WindowRefill(view.query, reader.snapshot, at: version)
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
        for subscriber in subscribers.values where subscriber.receivesAll { subscriber.mailbox.wake() }
      }
    }
    do {
      // If there are no listeners, there is nothing to do. A cleared database has no log of the time before.
      guard !subscribers.isEmpty, try reader.isLogged(since: version) else { return startOver(at: newest) }
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
    var touched: [Subscriber] = []
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
      if let document { Self.notify(document, transition, &touched) }
    }
    for view in views {
      if view.isShort { try refill(view, &reader, at: changes.upTo) }
      let delta = try view.finish { key in
        guard let row = try reader.collection(key.collection) else { return nil }
        return try reader.document(key.id, in: row.number, at: changes.upTo)
      }
      if let delta, delta.changes.isEmpty { continue }
      Self.notify(view, delta, &touched)
    }
    deliver(to: touched, at: changes.upTo)
  }

  private static func notify(
    _ document: DocumentSubscriptions, _ transition: DocumentTransition, _ touched: inout [Subscriber]
  ) {
    for subscription in document.guarded.values {
      subscription.subscriber.mailbox.requireReauthorization(subscription.target)
    }
    guard !document.subscriptions.isEmpty else { return }
    let state = transition.document.map(TargetDocumentChange.State.matches) ?? .deleted
    let delta = TargetDelta([TargetDocumentChange(key: transition.key, state: state)])
    for subscription in document.subscriptions.values { add(delta, for: subscription, &touched) }
  }

  private static func notify(_ view: QueryView, _ delta: TargetDelta?, _ touched: inout [Subscriber]) {
    for subscription in view.subscriptions.values {
      add(delta, for: subscription, &touched)
      if delta == nil { subscription.subscriber.targets[subscription.target]?.isJoined = false }
    }
  }

  private static func add(_ delta: TargetDelta?, for subscription: Subscription, _ touched: inout [Subscriber]) {
    let subscriber = subscription.subscriber
    guard !subscriber.isDetached, subscriber.targets[subscription.target]?.isJoined == true else { return }
    if subscriber.parts.isEmpty { touched.append(subscriber) }
    subscriber.parts.append(WatchBatch.Part(target: subscription.target, delta: delta))
  }

  private func deliver(to touched: [Subscriber], at version: Int64) {
    for subscriber in touched {
      let batch = WatchBatch(version: version, parts: subscriber.parts)
      subscriber.parts = []
      if !subscriber.mailbox.deliver(.batch(batch)) { subscriber.isDetached = true }
    }
  }

  /// Sends NO_CHANGE to the listeners whose turn it is.
  mutating func beat() {
    currentSlot = (currentSlot + 1) % Self.slots
    for subscriber in subscribers.values where subscriber.slot == currentSlot {
      if !subscriber.isDetached, !subscriber.mailbox.deliver(.noChange(version)) { subscriber.isDetached = true }
    }
  }

  /// Describes each listener, for diagnostics.
  func descriptions() -> [SubscriberDescription] {
    subscribers.values.map { subscriber in
      let statistics = subscriber.mailbox.statistics
      return SubscriberDescription(
        name: subscriber.mailbox.name,
        targets: (subscriber.receivesAll ? ["all changes"] : [])
          + subscriber.targets.sorted { $0.key < $1.key }.map(\.value.selection.text),
        lag: statistics.lastSentVersion == 0 ? 0 : max(0, version - statistics.lastSentVersion),
        queuedBytes: statistics.bytes)
    }
  }
}
