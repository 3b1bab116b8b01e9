import KeyValue

extension FileStore {
  /// The upper limit of commit numbers. Document stores accept no higher numbers.
  private static let numberMax: UInt64 = 1 << 56

  /// Stores an object, as ``put(_:_:_:declared:conditions:componentCount:removing:ending:check:)`` does, and
  /// commits documents, atomically. See ``StagedFileCommit``.
  ///
  /// Cost: two syncs of the metadata besides that of the documents. Other writes of files wait meanwhile.
  /// - Throws: as that function, and the errors of the commit. Then nothing has changed.
  package func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ attributes: ObjectAttributes,
    declared: DeclaredChecksums = DeclaredChecksums(), conditions: ObjectConditions = ObjectConditions(),
    with commit: DocumentsCommit
  ) throws(FilesError) -> StoredObject {
    try attributes.check()
    try requireAccepted(bytes: incoming.size)
    let content = try incoming.finish()
    try declared.check(content)
    guard let cache else { return try put(name, incoming, content, attributes, conditions, commit, covered: nil) }
    return try holding(content.digest) { () throws(FilesError) in
      try withCopies(of: content, from: incoming.path, cache) { (cover) throws(FilesError) in
        try put(name, incoming, content, attributes, conditions, commit, covered: cover)
      }
    }
  }

  private func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ content: ContentSummary, _ attributes: ObjectAttributes,
    _ conditions: ObjectConditions, _ commit: DocumentsCommit, covered cover: ContentCover?
  ) throws(FilesError) -> StoredObject {
    try exclusively { (last) throws(FilesError) in
      let number = UInt64.random(in: 1..<Self.numberMax)
      let object = try transact(&last) { (transaction, last, unreferenced) throws(FilesError) in
        try cover?.check(transaction)
        try requireBucket(name.bucket, transaction)
        let before = try transaction.object(name)
        try conditions.check(before)
        try requireRoom(forBytes: content.size, insteadOf: before, transaction)
        let object = makeObject(name, content, attributes, insteadOf: before, after: &last)
        unreferenced.append(content.digest)
        try contents.publish(incoming, as: content.digest)
        if cover != nil { contents.markShared(content.digest) }
        // The reference keeps the content until the outcome of the commit is known.
        _ = try transaction.count(content, by: 1)
        let pending = StagedFileCommit(number: number, database: commit.database, object: object)
        try transaction.write(FilesKeySpace.pendingCommit, pending.encoded)
        return object
      }
      var failure: FilesError?
      do throws(FilesError) { try commit.run(number) } catch { failure = error }
      do throws(FilesError) { try settle(&last) } catch {
        // Documents and object are committed even if this fails: readers find the record, and the next writer
        // settles it.
        if failure != nil { throw error }
      }
      if let failure, try self.object(name)?.generation != object.generation { throw failure }
      return object
    }
  }

  /// Completes or undoes an interrupted commit, under the writer's lock. Cost: one lookup if no commit is pending.
  func settle(_ last: inout Int64) throws(FilesError) {
    guard let pending = try pendingCommit() else { return }
    let isCommitted = try configuration.wasCommitted(pending.database, pending.number)
    try transact(&last) { (transaction, last, unreferenced) throws(FilesError) in
      try transaction.erase(FilesKeySpace.pendingCommit)
      let object = pending.object
      if isCommitted {
        let before = try transaction.object(object.name)
        try transaction.write(FilesKeySpace.object(object.name), ObjectRecord.encode(object))
        if let before { try retire(before, transaction, &unreferenced) }
        last = max(last, object.generation)
      } else if try transaction.count(object.content, by: -1) == 0 {
        unreferenced.append(object.content.digest)
      }
    }
  }

  private func pendingCommit() throws(FilesError) -> StagedFileCommit? {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    return try snapshot.pendingCommit()
  }

  /// The effect of a pending commit on a name that was looked up in a snapshot.
  enum PendingLookup {
    /// None: the snapshot is right.
    case asStored
    /// The name has this object since the documents were committed.
    case replaced(StoredObject)
    /// The commit was settled after the snapshot was taken: look up again.
    case passed
  }

  /// Returns the effect of the snapshot's pending commit, if `isAbout` is true for its object.
  func answer(
    _ snapshot: any KeyValueSnapshot, isAbout: (ObjectName) -> Bool
  ) throws(FilesError) -> PendingLookup {
    guard let pending = try snapshot.pendingCommit(), isAbout(pending.object.name) else { return .asStored }
    if try configuration.wasCommitted(pending.database, pending.number) { return .replaced(pending.object) }
    // If the number is not the last one, the commit may have been settled and followed by another.
    return try pendingCommit()?.number == pending.number ? .asStored : .passed
  }
}

extension KeyValueSnapshot {
  /// Returns the pending commit of an object with documents, or `nil` if none exists.
  func pendingCommit() throws(FilesError) -> StagedFileCommit? {
    guard let record = try read(FilesKeySpace.pendingCommit) else { return nil }
    guard let pending = StagedFileCommit(record) else {
      throw .storage(.corruption(path: "files", detail: "the record of a pending commit is not valid"))
    }
    return pending
  }
}
