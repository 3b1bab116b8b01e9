import KeyValue
import LMDBEngine

/// One way through a memtable that nobody changes any more, which writes its newest state in key order.
struct MemtableFlush {
  private let layer: MemtableLayer
  private var nextRange = 0
  private var next: MemtableNode?
  /// The number of keys passed.
  private(set) var keys = 0
  /// Whether everything is written.
  private(set) var isDone = false

  init(_ layer: MemtableLayer) {
    self.layer = layer
    next = layer.table.first
  }

  /// Writes a table in transactions of bounded size, and a mark with the last of them. After each transaction, `report`
  /// gets the number of keys written so far.
  ///
  /// As long as `isUrgent` returns `false`, the transactions are small and on a thread of low priority.
  static func write(
    _ layer: MemtableLayer, to base: any MarkedStore, _ mark: LogMark, operationsMax: Int, quietOperationsMax: Int,
    report: (_ keys: Int) -> Void, isUrgent: () -> Bool
  ) throws(StorageError) {
    var flush = MemtableFlush(layer)
    var failure: StorageError?
    func run(while condition: Bool, _ operationsMax: Int) {
      do throws(StorageError) {
        while !flush.isDone, isUrgent() == condition {
          try base.writeMarked { (transaction) throws(StorageError) in
            try flush.writeSome(to: transaction, operationsMax: operationsMax) ? mark : nil
          }
          report(flush.keys)
        }
      } catch { failure = error }
    }
    while !flush.isDone, failure == nil {
      run(while: true, operationsMax)
      if !flush.isDone, failure == nil { QuietThread.run { run(while: false, quietOperationsMax) } }
    }
    if let failure { throw failure }
  }

  /// Writes the next operations, about `operationsMax` of them. Returns whether these were the last.
  ///
  /// A removed range is one step, however many entries it has.
  mutating func writeSome(to transaction: any KeyValueTransaction, operationsMax: Int) throws(StorageError) -> Bool {
    var operations = 0
    while nextRange < layer.ranges.count {
      guard operations < operationsMax else { return false }
      operations += try remove(layer.ranges.ranges[nextRange], transaction) + 1
      nextRange += 1
    }
    while let node = next {
      guard operations < operationsMax else { return false }
      next = node.next(0)
      keys += 1
      guard let version = node.newest else { continue }
      if !layer.ranges.isEmpty, layer.ranges.ordinal(of: node.key) > version.ordinal { continue }
      if let value = version.value {
        try transaction.put(node.key, value)
      } else {
        try transaction.remove(node.key)
      }
      operations += 1
    }
    isDone = true
    return true
  }

  private func remove(
    _ range: RemovedRanges.Range, _ transaction: any KeyValueTransaction
  ) throws(StorageError) -> Int {
    var failure: StorageError?
    let count = range.lower.withUnsafeBytes { lower in
      range.upper.withUnsafeBytes { upper -> Int in
        do throws(StorageError) {
          return try transaction.removeRange(from: lower, to: upper)
        } catch { failure = error }
        return 0
      }
    }
    if let failure { throw failure }
    return count
  }
}
