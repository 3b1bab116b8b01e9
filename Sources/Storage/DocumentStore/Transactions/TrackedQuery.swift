package import DocumentModel
package import WireFormat

/// A query of a transaction while its results are returned.
///
/// At first, every document that the query may match counts as read. Once the limit of the query is reached, only
/// documents up to the last result do, because changes after it cannot affect what the client saw.
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

  /// Notes one result. Call it for every result, in order. Cost: none except for the last result that the limit allows.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  package mutating func returned(_ key: DocumentKey, _ document: StoredDocument) throws(WireError) {
    remaining -= 1
    guard remaining == 0 else { return }
    try transactions.end(range, after: EncodedMap(documentFields: document.fields), at: key, in: transaction)
  }
}
