import DatabaseService
import DocumentModel
import Transport
import WireFormat

// Commit, BatchWrite, BeginTransaction, Rollback.
extension GRPCHandler {
  func commit(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    let decoded = try decodeWrites(message, for: database, call)
    let hasWrites = !decoded.writes.isEmpty
    let bound = call.bound
    try service.commit(decoded.writes, transaction: decoded.transaction, in: database, as: call.caller) { result in
      bound.onLoop { call in
        call.send { out in
          let outcome = try result.get()
          // A commit without writes has no commit time.
          guard hasWrites else { return }
          for result in outcome.results {
            ProtobufWriter.message(1, to: &out) { DocumentProtobuf.append(result, to: &$0) }
          }
          ProtobufWriter.timestamp(2, outcome.version, to: &out)
        }
      }
    }
  }

  func batchWrite(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    let decoded = try decodeWrites(message, for: database, call)
    let bound = call.bound
    try service.batchWrite(decoded.writes, in: database, as: call.caller) { results in
      bound.onLoop { call in
        call.send { out in
          for result in results {
            ProtobufWriter.message(1, to: &out) { out in
              if case .success(let written) = result { DocumentProtobuf.append(written, to: &out) }
            }
          }
          for result in results {
            ProtobufWriter.message(2, to: &out) { out in
              guard case .failure(let status) = result else { return }
              DocumentProtobuf.append(code: status.code.rawValue, message: status.message, to: &out)
            }
          }
        }
      }
    }
  }

  func beginTransaction(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    var mode: TransactionMode?
    try decode(message, for: database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        if field.number == 2, field.wireType == .lengthDelimited {
          mode = TransactionMode(try decoder.transactionOptions(field.bytes))
        }
      }
    }
    // BeginTransaction without a mode begins a read-write transaction. `new_transaction` without one is read-only.
    let transaction = try service.beginTransaction(mode ?? .readWrite(retrying: nil), in: database, as: call.caller)
    call.send { ProtobufWriter.bytes(1, transaction.bytes, to: &$0) }
  }

  func rollback(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    var transaction = TransactionID(bytes: [])
    try decode(message, for: database, call) { _ in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        if field.number == 2, field.wireType == .lengthDelimited {
          transaction = TransactionID(bytes: Array(field.bytes))
        }
      }
    }
    try service.rollback(transaction, in: database, as: call.caller)
    call.sendEmpty()
  }

  /// Decodes the writes of a Commit or a BatchWrite, and the transaction of a Commit.
  private func decodeWrites(
    _ message: UnsafeRawBufferPointer, for database: DatabaseID, _ call: GRPCCall
  ) throws -> (writes: [Write], transaction: TransactionID?) {
    try decode(message, for: database, call) { decoder in
      var writes: [Write] = []
      var transaction: TransactionID?
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited):
          let addressed = try decoder.write(field.bytes)
          try Self.check(addressed.database, is: database)
          writes.append(addressed.write)
        // An empty bytes field means absent. In a BatchWrite this field contains labels, which are ignored.
        case (3, .lengthDelimited) where !field.bytes.isEmpty: transaction = TransactionID(bytes: Array(field.bytes))
        default: break
        }
      }
      return (writes, transaction)
    }
  }
}
