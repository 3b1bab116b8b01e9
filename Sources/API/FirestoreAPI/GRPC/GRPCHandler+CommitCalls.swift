import DatabaseService
import DocumentModel
import Transport
import WireFormat

// Commit, BatchWrite, BeginTransaction, Rollback.
extension GRPCHandler {
  func commit(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    try service.checkRoom(forCommitOf: message.count)
    try decode(message, CommitMessage(), in: database, call) { [service] commit, call in
      let bound = call.bound
      try service.commit(
        commit.writes, transaction: commit.transaction, in: database, as: call.caller, requestID: call.requestID
      ) { result in
        bound.onLoop { $0.send(result.map { CommitResponse($0.results, commitTime: $0.version) }) }
      }
    }
  }

  func batchWrite(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    try service.checkRoom(forCommitOf: message.count)
    try decode(message, BatchWriteRequest(), in: database, call) { [service] batch, call in
      let bound = call.bound
      try service.batchWrite(batch.writes, in: database, as: call.caller, requestID: call.requestID) { results in
        bound.onLoop { $0.send(BatchWriteResponse(results)) }
      }
    }
  }

  func beginTransaction(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    let begin = try decode(message, BeginTransactionRequest(), in: database, call)
    call.send(BeginTransactionResponse(try service.beginTransaction(begin.mode, in: database, as: call.caller)))
  }

  func rollback(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    let rollback = try decode(message, RollbackRequest(), in: database, call)
    try service.rollback(rollback.transaction, in: database, as: call.caller)
    call.send(EmptyMessage())
  }
}
