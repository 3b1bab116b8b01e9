import DocumentModel
import WireFormat

/// Arrays (pipelines.md, section 4.7).
extension ExpressionEvaluator {
  func array(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    switch function {
    case .array: return newArray(arguments)
    case .arrayConcat: return concatenated(arguments)
    case .arrayLength: return .integer(Int64(ExpressionItems.count(arguments[0])))
    case .arrayReverse:
      guard let items = decoded(arguments[0]), let copy = self.items(items.count) else { return exhausted(.memory) }
      for (index, item) in items.enumerated() { (copy.baseAddress! + items.count - 1 - index).initialize(to: item) }
      return .array(UnsafeBufferPointer(copy))
    case .arrayContainsAll, .arrayContainsAny: return containsEach(function, arguments[0], arguments[1])
    case .arrayFirst, .arrayLast: return element(of: arguments[0], at: function == .arrayFirst ? 0 : -1)
    case .maximum, .minimum:
      var best = ExpressionValue.null
      var items = ExpressionItems(arguments[0])
      while let item = items.next(), work >= 0 {
        if case .null = item { continue }
        best = better(best, item, greatest: function == .maximum)
      }
      return best
    case .sum: return sum(arguments[0])
    default: return indexed(function, arguments)
    }
  }

  /// Computes the functions that handle null themselves.
  private func indexed(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    let array = arguments[0]
    guard array.isNothing || array.types == .array else { return fail(function, .type, 1) }
    let second = arguments[1].ordinary
    switch function {
    case .arrayContains:
      if array.isNothing { return .null }
      if case .absent = second { return .boolean(false) }
      return contains(array, arguments[1])
    case .arrayGet:
      guard case .integer(let index) = second else { return fail(function, .type, 2) }
      return array.isNothing ? .null : element(of: array, at: index)
    case .arrayFirstN, .arrayLastN, .maximumN, .minimumN:
      guard case .integer(let count) = second else { return fail(function, .type, 2) }
      guard count >= 0 else { return fail(function, .argument, 2) }
      if array.isNothing { return .null }
      if function == .maximumN || function == .minimumN {
        return best(Int(count), of: array, greatest: function == .maximumN)
      }
      let total = Int64(ExpressionItems.count(array))
      let taken = min(count, total)
      return part(of: array, from: Int(function == .arrayFirstN ? 0 : total - taken), count: Int(taken))
    case .arraySlice: return slice(array, arguments)
    default: return indexes(function, array, arguments)
    }
  }

  // MARK: Items

  /// Returns the items of an array, or `nil` if the row has used up its memory.
  func decoded(_ array: ExpressionValue) -> UnsafeBufferPointer<ExpressionValue>? {
    if case .array(let items) = array { return items }
    let count = ExpressionItems.count(array)
    guard charge(4 * count), let copy = items(count) else { return nil }
    var cursor = ExpressionItems(array)
    var index = 0
    while index < count, let item = cursor.next() {
      (copy.baseAddress! + index).initialize(to: item)
      index += 1
    }
    return UnsafeBufferPointer(rebasing: copy[..<index])
  }

  private func newArray(_ arguments: Arguments) -> ExpressionValue {
    guard let copy = items(arguments.count) else { return exhausted(.memory) }
    for (index, argument) in arguments.enumerated() {
      var item = argument
      if case .absent = argument { item = .null }
      (copy.baseAddress! + index).initialize(to: item)
    }
    return .array(UnsafeBufferPointer(copy))
  }

  /// Concatenates arrays.
  func concatenated(_ arrays: Arguments) -> ExpressionValue {
    var count = 0
    for array in arrays { count += ExpressionItems.count(array) }
    guard charge(8 * count), let copy = items(count) else { return exhausted(.memory) }
    var index = 0
    for array in arrays {
      var cursor = ExpressionItems(array)
      while index < count, let item = cursor.next() {
        (copy.baseAddress! + index).initialize(to: item)
        index += 1
      }
    }
    return .array(UnsafeBufferPointer(rebasing: copy[..<index]))
  }

  /// Returns the item at a zero-based index, counted from the end if negative, or absent.
  private func element(of array: ExpressionValue, at index: Int64) -> ExpressionValue {
    if case .array(let items) = array {
      let place = index < 0 ? Int64(items.count) + index : index
      return place >= 0 && place < Int64(items.count) ? items[Int(place)] : .absent
    }
    let place = index < 0 ? Int64(ExpressionItems.count(array)) + index : index
    guard place >= 0 else { return .absent }
    var cursor = ExpressionItems(array)
    var current: Int64 = 0
    while let item = cursor.next() {
      if current == place { return item }
      current += 1
    }
    return .absent
  }

  private func part(of array: ExpressionValue, from start: Int, count: Int) -> ExpressionValue {
    guard let items = decoded(array) else { return exhausted(.memory) }
    let first = min(start, items.count)
    return .array(UnsafeBufferPointer(rebasing: items[first..<min(first + count, items.count)]))
  }

  private func slice(_ array: ExpressionValue, _ arguments: Arguments) -> ExpressionValue {
    guard case .integer(let offset) = arguments[1].ordinary else { return fail(.arraySlice, .type, 2) }
    var length = Int64.max
    if arguments.count == 3 {
      guard case .integer(let given) = arguments[2].ordinary else { return fail(.arraySlice, .type, 3) }
      guard given >= 0 else { return fail(.arraySlice, .negativeLength) }
      length = given
    }
    if array.isNothing { return .null }
    let total = Int64(ExpressionItems.count(array))
    let start = offset < 0 ? max(0, total + max(offset, -total)) : min(offset, total)
    return part(of: array, from: Int(start), count: Int(min(length, total - start)))
  }

  // MARK: Searches

  /// Returns whether an array contains a value.
  func contains(_ array: ExpressionValue, _ value: ExpressionValue) -> ExpressionValue {
    var items = ExpressionItems(array)
    while let item = items.next() {
      guard charge(8) else { return exhausted(.work) }
      if equal(item, value) { return .boolean(true) }
    }
    return .boolean(false)
  }

  private func containsEach(
    _ function: ExpressionFunction, _ array: ExpressionValue, _ wanted: ExpressionValue
  ) -> ExpressionValue {
    // Each wanted item searches the whole array, so its items are decoded once.
    guard let items = decoded(array) else { return exhausted(.memory) }
    var cursor = ExpressionItems(wanted)
    while let value = cursor.next() {
      let found = contains(.array(items), value)
      guard case .boolean(let isFound) = found else { return found }
      if isFound != (function == .arrayContainsAll) { return .boolean(isFound) }
    }
    return .boolean(function == .arrayContainsAll)
  }

  private func indexes(
    _ function: ExpressionFunction, _ array: ExpressionValue, _ arguments: Arguments
  ) -> ExpressionValue {
    var isLast = false
    if arguments.count == 3 {
      guard case .string(let mode) = arguments[2] else { return fail(function, .type, 3) }
      isLast = mode.elementsEqual("last".utf8)
      guard isLast || mode.elementsEqual("first".utf8) else { return fail(function, .argument, 3) }
    }
    if array.isNothing { return .null }
    if case .absent = arguments[1] { return .null }
    var found: [Int64] = []
    var index: Int64 = 0
    var items = ExpressionItems(array)
    while let item = items.next() {
      guard charge(8) else { return exhausted(.work) }
      if equal(item, arguments[1]) {
        if function == .arrayIndexOf, !isLast { return .integer(index) }
        if isLast { found.removeAll(keepingCapacity: true) }
        found.append(index)
      }
      index += 1
    }
    if function == .arrayIndexOf { return .integer(found.last ?? -1) }
    guard let copy = self.items(found.count) else { return exhausted(.memory) }
    for (place, number) in found.enumerated() { (copy.baseAddress! + place).initialize(to: .integer(number)) }
    return .array(UnsafeBufferPointer(copy))
  }

  // MARK: Numbers

  private func best(_ count: Int, of array: ExpressionValue, greatest: Bool) -> ExpressionValue {
    guard let all = decoded(array), let copy = items(all.count) else { return exhausted(.memory) }
    var kept = 0
    var size = 0
    for item in all {
      if case .null = item { continue }
      (copy.baseAddress! + kept).initialize(to: item)
      size += ExpressionOrder.cost(item)
      kept += 1
    }
    guard charge(size * (Int.bitWidth - kept.leadingZeroBitCount)) else { return exhausted(.work) }
    var sorted = UnsafeMutableBufferPointer(rebasing: copy[..<kept])
    sorted.sort { ExpressionOrder.compare($0, $1) == (greatest ? .greater : .less) }
    return .array(UnsafeBufferPointer(rebasing: sorted[..<min(count, kept)]))
  }

  private func sum(_ array: ExpressionValue) -> ExpressionValue {
    var integers: Int64 = 0
    var doubles = 0.0
    var hasIntegers = false
    var hasDoubles = false
    var items = ExpressionItems(array)
    while let item = items.next() {
      switch item.ordinary {
      case .integer(let number) where hasDoubles: doubles += Double(number)
      case .integer(let number):
        let (total, overflow) = integers.addingReportingOverflow(number)
        if overflow { return fail(.sum, .overflow) }
        integers = total
        hasIntegers = true
      case .double(let number):
        if !hasDoubles { doubles = Double(integers) }
        doubles += number
        hasDoubles = true
      default: break
      }
    }
    return hasDoubles ? .double(doubles) : (hasIntegers ? .integer(integers) : .null)
  }

  // MARK: Lambdas

  /// Evaluates `array_filter(array, "x", predicate)`.
  func filter(_ node: ExpressionProgram.Node) -> ExpressionValue {
    let array = evaluate(operand(node, 0))
    if array.isNothing { return .null }
    guard array.types == .array else { return array.isError ? array : fail(.arrayFilter, .type, 1) }
    guard let all = decoded(array), let copy = items(all.count) else { return exhausted(.memory) }
    var kept = 0
    for item in all {
      parameters[Int(node.c)] = item
      switch evaluate(operand(node, 1)) {
      case .boolean(true):
        (copy.baseAddress! + kept).initialize(to: item)
        kept += 1
      case .boolean(false), .null, .absent: break
      case .error(let fault): return .error(fault)
      default: return fail(.arrayFilter, .type, 3)
      }
    }
    return .array(UnsafeBufferPointer(rebasing: copy[..<kept]))
  }

  /// Evaluates `array_transform(array, "x", result)` or `array_transform(array, "x", "i", result)`.
  func transform(_ node: ExpressionProgram.Node) -> ExpressionValue {
    let array = evaluate(operand(node, 0))
    if array.isNothing { return .null }
    guard array.types == .array else { return array.isError ? array : fail(.arrayTransform, .type, 1) }
    guard let all = decoded(array), let copy = items(all.count) else { return exhausted(.memory) }
    for (index, item) in all.enumerated() {
      parameters[Int(node.c)] = item
      if node.b == 2 { parameters[Int(node.c) + 1] = .integer(Int64(index)) }
      var result = evaluate(operand(node, 1))
      if case .error = result { return result }
      if case .absent = result { result = .null }
      (copy.baseAddress! + index).initialize(to: result)
    }
    return .array(UnsafeBufferPointer(copy))
  }
}
