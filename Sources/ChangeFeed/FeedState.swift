import DocumentModel
import DocumentStore
import KeyValueStore

/// Everything a feed knows, used on its queue only.
struct FeedState {
  /// The version that was reached: everything up to it was told.
  private(set) var version = Int64.min
  private(set) var members: [ObjectIdentifier: FeedMember] = [:]
  private var index = ViewIndex()
  private var joined = 0
  private var turn = 0
  private var followersOfAll = 0

  /// A listener is told that nothing happened every so many beats: 32 seconds.
  static let slots = 8
  /// Changes that one step takes, about.
  static let stepRowsMax = 4096
  /// Slices of a query that a step runs for a window that became short, before it leaves that to the listeners.
  private static let refillSlicesMax = 16

  // MARK: Members

  mutating func member(_ listener: FeedListener) -> FeedMember {
    if let known = members[ObjectIdentifier(listener)] { return known }
    joined += 1
    let member = FeedMember(listener, slot: joined % Self.slots)
    members[ObjectIdentifier(listener)] = member
    return member
  }

  /// Has a listener woken by every commit.
  mutating func followAll(_ listener: FeedListener) {
    let member = member(listener)
    guard !member.followsAll else { return }
    member.followsAll = true
    followersOfAll += 1
    // What was committed since it looked last went untold.
    listener.nudge()
  }

  mutating func remove(_ listener: FeedListener) {
    guard let member = members.removeValue(forKey: ObjectIdentifier(listener)) else { return }
    if member.followsAll { followersOfAll -= 1 }
    for target in member.targets.keys { remove(target, from: member) }
  }

  mutating func add(_ number: Int, _ selection: FeedSelection, to member: FeedMember) {
    let follower = Follower(member: member, target: number)
    switch selection {
    case .query(let query):
      let view = index.view(of: query)
      view.followers[follower.id] = follower
      member.targets[number] = FeedMember.Target(selection: selection, view: view)
    case .documents(let keys):
      for key in keys { index.change(key) { $0.followers[follower.id] = follower } }
      member.targets[number] = FeedMember.Target(selection: selection, view: nil)
    }
  }

  mutating func remove(_ number: Int, from member: FeedMember) {
    guard let target = member.targets.removeValue(forKey: number) else { return }
    let id = Follower(member: member, target: number).id
    for key in target.guards { index.change(key) { $0.guarded[id] = nil } }
    switch target.selection {
    case .documents(let keys): for key in keys { index.change(key) { $0.followers[id] = nil } }
    case .query:
      guard let view = target.view else { return }
      view.followers[id] = nil
      if view.followers.isEmpty { index.remove(view) }
    }
  }

  /// Notes what a target's admission rests on, and doubts it where that is not what was seen.
  mutating func setGuards(
    _ guards: [(key: DocumentKey, version: Int64)], of number: Int, _ member: FeedMember, _ reader: inout DocumentReader
  ) {
    let follower = Follower(member: member, target: number)
    for key in member.targets[number]?.guards ?? [] { index.change(key) { $0.guarded[follower.id] = nil } }
    member.targets[number]?.guards = guards.map(\.key)
    for (key, seen) in guards {
      index.change(key) { $0.guarded[follower.id] = follower }
      // One that cannot be read is for the judge to find.
      if (try? reader.document(key)?.updateVersion ?? 0) != seen { member.listener.doubt(number) }
    }
  }

  /// Tells a member from which version on targets are followed, or which windows it has to fetch for that.
  mutating func tellJoined(_ member: FeedMember, _ numbers: [Int]) {
    guard !member.isDetached else { return }
    var targets: [FeedJoin.Target] = []
    for number in numbers {
      guard let view = member.targets[number]?.view else {
        targets.append(FeedJoin.Target(target: number, members: nil))
        member.targets[number]?.isJoined = true
        continue
      }
      member.targets[number]?.isJoined = !view.isUnfilled
      if view.isUnfilled {
        member.listener.answer(.wanted(target: number, version: version))
      } else {
        targets.append(FeedJoin.Target(target: number, members: view.members))
      }
    }
    if !targets.isEmpty { member.listener.answer(.joined(FeedJoin(version: version, targets: targets))) }
  }

  /// Has everybody catch up by themselves.
  private func detachAll() {
    for view in index.allViews { view.startOver() }
    for member in members.values {
      member.parts = []
      if !member.isDetached { member.detach() }
    }
  }

  // MARK: Windows

  /// Takes a window that was fetched at an earlier version, where it can be brought up to this one.
  func fill(_ view: QueryView, _ contents: WindowFill.Contents, _ reader: inout DocumentReader) throws {
    guard contents.version <= version, try reader.isLogged(since: contents.version) else { return }
    view.fill(contents.entries)
    var from = contents.version
    while from < version {
      let changes = try reader.loggedChanges(after: from, rowsMax: Self.stepRowsMax)
      for changed in changes.documents {
        guard let id = changed.id else { continue }
        let key = DocumentKey(uncheckedPath: try reader.collectionPath(changed.collection).appending(id))
        try view.bringUp(key, try reader.document(id, in: changed.collection, at: version))
      }
      guard changes.upTo > from else { break }
      from = changes.upTo
    }
    if view.isShort { try refill(view, &reader, at: version) }
  }

  /// Runs the query of a window that became short, as far as that is soon done; else empties it.
  private func refill(_ view: QueryView, _ reader: inout DocumentReader, at version: Int64) throws {
    guard try reader.isReadable(at: version) else { return view.empty() }
    let fill = try WindowFill(view.query, reader.snapshot, at: version)
    for _ in 0..<Self.refillSlicesMax {
      try fill.slice(reader.snapshot)
      if let contents = fill.contents { return view.fill(contents.entries) }
    }
    view.empty()
  }

  // MARK: Steps

  /// Steps to the newest version that a snapshot shows.
  mutating func step(_ reader: inout DocumentReader) throws(StorageError) {
    let newest = try reader.lastVersion()
    guard newest > version else { return }
    defer {
      if followersOfAll > 0 {
        for member in members.values where member.followsAll { member.listener.nudge() }
      }
    }
    do {
      // Nobody may be there, and a database that was cleared has no log of before.
      guard !members.isEmpty, try reader.isLogged(since: version) else { return startOver(at: newest) }
      while version < newest {
        let changes = try reader.loggedChanges(after: version, rowsMax: Self.stepRowsMax)
        guard try reader.isReadable(at: changes.upTo) else { return startOver(at: newest) }
        try take(changes, &reader)
        version = changes.upTo
      }
    } catch {
      // What cannot be read here is met again by the listeners whom it concerns, and only by them.
      startOver(at: newest)
    }
  }

  private mutating func startOver(at newest: Int64) {
    index.forgetNumbers()
    detachAll()
    version = newest
  }

  private mutating func take(_ changes: LoggedChanges, _ reader: inout DocumentReader) throws {
    var views: [QueryView] = []
    var touched: [FeedMember] = []
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
          try view.take(transition)
          if view.isTouched, !wasTouched { views.append(view) }
        }
      }
      if let document { Self.tell(document, transition, &touched) }
    }
    for view in views {
      if view.isShort { try refill(view, &reader, at: changes.upTo) }
      let delta = try view.finish { key in
        guard let row = try reader.collection(key.collection) else { return nil }
        return try reader.document(key.id, in: row.number, at: changes.upTo)
      }
      if let delta, delta.changes.isEmpty { continue }
      Self.tell(view, delta, &touched)
    }
    deliver(to: touched, at: changes.upTo)
  }

  private static func tell(_ document: DocumentInterest, _ transition: DocumentTransition, _ touched: inout [FeedMember]) {
    for follower in document.guarded.values { follower.member.listener.doubt(follower.target) }
    guard !document.followers.isEmpty else { return }
    let state = transition.document.map(FeedChange.State.matches) ?? .deleted
    let delta = FeedDelta([FeedChange(key: transition.key, state: state)])
    for follower in document.followers.values { add(delta, for: follower, &touched) }
  }

  private static func tell(_ view: QueryView, _ delta: FeedDelta?, _ touched: inout [FeedMember]) {
    for follower in view.followers.values {
      add(delta, for: follower, &touched)
      if delta == nil { follower.member.targets[follower.target]?.isJoined = false }
    }
  }

  private static func add(_ delta: FeedDelta?, for follower: Follower, _ touched: inout [FeedMember]) {
    let member = follower.member
    guard !member.isDetached, member.targets[follower.target]?.isJoined == true else { return }
    if member.parts.isEmpty { touched.append(member) }
    member.parts.append(FeedBatch.Part(target: follower.target, delta: delta))
  }

  private func deliver(to touched: [FeedMember], at version: Int64) {
    for member in touched {
      let batch = FeedBatch(version: version, parts: member.parts)
      member.parts = []
      if !member.listener.deliver(.batch(batch)) { member.isDetached = true }
    }
  }

  /// Tells the members whose turn it is that nothing happened.
  mutating func beat() {
    turn = (turn + 1) % Self.slots
    for member in members.values where member.slot == turn {
      if !member.isDetached, !member.listener.deliver(.quiet(version)) { member.isDetached = true }
    }
  }

  /// What is known of each member.
  func descriptions() -> [FeedDescription] {
    members.values.map { member in
      let load = member.listener.load
      return FeedDescription(
        name: member.listener.name,
        targets: member.targets.sorted { $0.key < $1.key }.map(\.value.selection.text),
        lag: load.told == 0 ? 0 : max(0, version - load.told), queuedBytes: load.bytes)
    }
  }
}
