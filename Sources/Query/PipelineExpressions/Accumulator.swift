import DocumentModel

/// The running state of one accumulator over the rows of one group.
///
/// The states of parts of a group can be encoded, so that groups spill to scratch files, and merged in the order of
/// their rows.
package struct Accumulator {
  private let function: AccumulatorFunction
  private var count = 0
  /// The sum of the integers in 128 bits, so that the order of rows does not decide about an overflow.
  private var integers: Int128 = 0
  private var doubles = 0.0
  private var hasDoubles = false
  /// An encoded value: the least, the greatest, the first or the last.
  private var held: [UInt8] = []
  private var hasValue = false
  /// The encoded elements of an array, each as a field of an ArrayValue message.
  private var elements: [UInt8] = []
  /// The keys of the values that were seen.
  private var seen: Set<[UInt8]> = []
  private var seenBytes = 0

  /// Creates the state of no rows.
  package init(_ function: AccumulatorFunction) { self.function = function }
}
