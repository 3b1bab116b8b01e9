package import DocumentModel
package import WireFormat

/// A query that a transaction remembers, while its results go out.
///
/// From the start on everything the query may come across counts. Once its limit is reached, only what lies up to the
/// last result does: what changes behind that cannot change what the client saw.
package struct TrackedQuery: Sendable {
  private let transactions: TransactionTable
  private let transaction: TransactionID
  private let range: ReadSet.RangeID
  private var remaining: Int

  init(_ transactions: TransactionTable, _ transaction: TransactionID, _ range: ReadSet.RangeID, limit: Int) {
    self.transactions = transactions
    self.transaction = transaction
    self.range = range
    remaining = limit
  }

  /// Must be told every result. Cost: none but for the last that the limit allows.
  /// - Throws: ``WireError`` when the stored bytes are no fields.
  package mutating func returned(_ key: DocumentKey, _ document: StoredDocument) throws(WireError) {
    remaining -= 1
    guard remaining == 0 else { return }
    try transactions.end(range, behind: EncodedMap(documentFields: document.fields), at: key, in: transaction)
  }
}
