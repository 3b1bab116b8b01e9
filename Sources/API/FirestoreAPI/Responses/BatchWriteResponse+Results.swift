import DatabaseService
import DocumentModel
import WireFormat

extension BatchWriteResponse {
  /// Creates the response with the results of the writes, in order.
  init(_ results: [Result<WriteResult, Status>]) {
    self.init(
      results.map { result in
        switch result {
        case .success(let written): (written, nil)
        case .failure(let status): (WriteResult(updateTime: nil), (status.code.rawValue, status.message))
        }
      })
  }
}
