import KeyValue

extension FileStore {
  /// Numbers of commits are below this: the documents' stores take no higher ones.
  private static let numberMax: UInt64 = 1 << 56

  /// Makes an object, as ``put(_:_:_:declared:conditions:componentCount:ending:judge:)`` does, and commits documents: both
  /// happen at one moment, or neither does. See ``StagedFileCommit``.
  ///
  /// Cost: two syncs of the metadata beside that of the documents; nobody else writes files meanwhile.
  /// - Throws: as the other, and what the commit throws; nothing has changed then.
  package func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ attributes: ObjectAttributes,
    declared: DeclaredChecksums = DeclaredChecksums(), conditions: ObjectConditions = ObjectConditions(),
    with commit: DocumentsCommit
  ) throws(FilesError) -> StoredObject {
    try attributes.check()
    let content = try incoming.finish()
    try declared.check(content)
    return try exclusively { (last) throws(FilesError) in
      let number = UInt64.random(in: 1..<Self.numberMax)
      let object = try transact(&last) { (transaction, last, unheld) throws(FilesError) in
        try requireBucket(name.bucket, transaction)
        let (object, _) = try makeObject(
          name, content, attributes, conditions: conditions, transaction, &last)
        unheld.append(content.digest)
        try contents.publish(incoming, as: content.digest)
        // Held from here on, so that the content stays until it is known what became of the commit.
        _ = try transaction.count(content.digest, by: 1)
        let pending = StagedFileCommit(number: number, database: commit.database, object: object)
        try transaction.write(FilesKeySpace.pendingCommit, pending.encoded)
        return object
      }
      var failure: FilesError?
      do throws(FilesError) { try commit.run(number) } catch { failure = error }
      do throws(FilesError) { try settle(&last) } catch {
        // The documents are committed, and so is the object: who reads it finds the record, who writes ends this first.
        if failure != nil { throw error }
      }
      if let failure, try self.object(name)?.generation != object.generation { throw failure }
      return object
    }
  }

  /// Ends a change that was left between its steps, under the writer's lock. Cost: one lookup where there is none.
  func settle(_ last: inout Int64) throws(FilesError) {
    guard let pending = try pendingCommit() else { return }
    let isCommitted = try configuration.wasCommitted(pending.database, pending.number)
    try transact(&last) { (transaction, last, unheld) throws(FilesError) in
      try transaction.erase(FilesKeySpace.pendingCommit)
      let object = pending.object
      if isCommitted {
        let before = try transaction.object(object.name)
        try transaction.write(FilesKeySpace.object(object.name), ObjectRecord.encode(object))
        if let before { try retire(before, transaction, &unheld) }
        last = max(last, object.generation)
      } else if try transaction.count(object.content.digest, by: -1) == 0 {
        unheld.append(object.content.digest)
      }
    }
  }

  private func pendingCommit() throws(FilesError) -> StagedFileCommit? {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    return try snapshot.pendingCommit()
  }

  /// What a change under way makes of a name that a snapshot was asked for.
  enum PendingLookup {
    /// Nothing: what the snapshot says holds.
    case asStored
    /// The name holds this object since the documents were committed.
    case replaced(StoredObject)
    /// The change ended meanwhile: look again.
    case passed
  }

  /// What a change that a snapshot found under way makes of `isAbout` its object.
  func answer(
    _ snapshot: any KeyValueSnapshot, isAbout: (ObjectName) -> Bool
  ) throws(FilesError) -> PendingLookup {
    guard let pending = try snapshot.pendingCommit(), isAbout(pending.object.name) else { return .asStored }
    if try configuration.wasCommitted(pending.database, pending.number) { return .replaced(pending.object) }
    // Its number may no longer be the last because it has ended and another followed.
    return try pendingCommit()?.number == pending.number ? .asStored : .passed
  }
}

extension KeyValueSnapshot {
  /// The change that happens with a commit of documents, where one is under way.
  func pendingCommit() throws(FilesError) -> StagedFileCommit? {
    guard let record = try read(FilesKeySpace.pendingCommit) else { return nil }
    guard let pending = StagedFileCommit(record) else {
      throw .storage(.corruption(path: "files", detail: "the record of a commit with a file is damaged"))
    }
    return pending
  }
}
