/// The state of one declared index, or of one field that is not indexed automatically.
package struct IndexReport: Equatable, Sendable {
  /// The state of an index.
  package enum State: String, Sendable {
    /// Entries of existing documents are being added.
    case building
    /// Entries are being deleted.
    case removing
    /// Complete and in use.
    case ready
    /// A document's entry exceeds the size limit. The index is not used.
    case failed
  }

  /// A description such as `rooms (owner ascending, rank descending)`.
  package var text: String
  package var state: State
  /// The documents processed so far while the index is being built.
  package var documents: Int

  package init(text: String, state: State, documents: Int) {
    self.text = text
    self.state = state
    self.documents = documents
  }

  /// The report in one line.
  package var line: String {
    switch state {
    case .building: "\(text): building, \(documents) documents so far"
    case .removing: "\(text): removing"
    case .ready: "\(text): ready"
    case .failed: "\(text): failed: an entry exceeds the size limit; queries do not use this index"
    }
  }
}
