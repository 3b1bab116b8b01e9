import DocumentModel

extension FindNearest {
  /// Checks the parameters of a vector search, and that its query has no part that cannot be combined with one
  /// (firestore-api.md, section 5.2).
  func check(in query: Query) throws(QueryError) {
    if query.limit != nil { throw .nearestWithLimit }
    if query.offset != 0 { throw .nearestWithOffset }
    if query.start != nil || query.end != nil { throw .nearestWithCursor }
    guard (1...Limits.nearestDocumentsMax).contains(limit) else { throw .nearestLimit }
    if let threshold, !threshold.isFinite { throw .thresholdNotFinite }
    guard let resultField else { return }
    let name = resultField.segments[0]
    if name.utf8.count > Limits.fieldNameBytesMax { throw .resultFieldTooLong }
    if ResourceID.isReserved(Array(name.utf8)) { throw .resultFieldReserved(name) }
  }
}
