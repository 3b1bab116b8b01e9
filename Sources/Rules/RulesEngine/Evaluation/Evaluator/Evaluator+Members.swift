import Basics
import DocumentModel
import WireFormat

/// Members, indexes and slices.
extension Evaluator {
  /// Returns the value of a stored field.
  func value(_ encoded: EncodedValue) -> RuleValue {
    do throws(WireError) {
      switch try encoded.content {
      case .null: return .null
      case .boolean(let value): return .bool(value)
      case .integer(let value): return .int(value)
      case .double(let value): return .float(value)
      case .timestamp(let value): return .timestamp(Moment(seconds: value.seconds, nanos: value.nanos))
      case .string(let text): return .string(text)
      case .bytes(let bytes): return .bytes(bytes)
      case .geoPoint(let point): return .latlng(latitude: point.latitude, longitude: point.longitude)
      case .array(let array): return .encodedList(array.bytes)
      case .map(let map):
        if let components = try map.vectorComponents { return .vector(components.bytes) }
        return .encodedMap(map.bytes)
      case .reference(let name): return reference(name)
      }
    } catch {
      return failure(.damaged)
    }
  }

  /// Returns a reference as the path `/databases/{db}/documents/…`, without the project.
  private func reference(_ name: UnsafeRawBufferPointer) -> RuleValue {
    guard charge(name.count) else { return stopFailure }
    var count = 1
    for byte in name where byte == UInt8(ascii: "/") { count += 1 }
    guard let segments = arena.take(PathSegment.self, count) else { return outOfMemory() }
    var start = 0
    var index = 0
    var kept = 0
    for end in 0...name.count where end == name.count || name[end] == UInt8(ascii: "/") {
      if index >= 2 {
        (segments + kept).initialize(to: PathSegment(UnsafeRawBufferPointer(rebasing: name[start..<end])))
        kept += 1
      }
      start = end + 1
      index += 1
    }
    return .path(UnsafeBufferPointer(start: segments, count: kept))
  }

  /// Evaluates `base.name`.
  @inline(__always)
  func member(_ base: RuleValue, _ name: UnsafeRawBufferPointer, property: Int) -> RuleValue {
    switch base {
    case .failure: return base
    case .encodedFields, .encodedMap, .map, .object, .partialMap:
      return entry(base, name, property: property) ?? undefinedProperty(of: base, name)
    default: return memberOfOther(base, name)
    }
  }

  @inline(never)
  private func undefinedProperty(of base: RuleValue, _ name: UnsafeRawBufferPointer) -> RuleValue {
    if case .partialMap = base { return failure(.unknownByQuery) }
    return failure(.undefinedProperty, text: name)
  }

  @inline(never)
  private func memberOfOther(_ base: RuleValue, _ name: UnsafeRawBufferPointer) -> RuleValue {
    switch base {
    case .null: failure(.nullValue)
    case .path(let segments): variable(name, of: segments)
    default: failure(.type, text: "map,path", base)
    }
  }

  /// Returns the value of a map's entry, or `nil` if the map does not have it. `property` is the number of a known
  /// name, or -1.
  func entry(_ map: RuleValue, _ name: UnsafeRawBufferPointer, property: Int = -1) -> RuleValue? {
    switch map {
    case .encodedFields(let bytes): encodedEntry(EncodedMap(documentFields: bytes), name)
    case .encodedMap(let bytes): encodedEntry(EncodedMap(mapValue: bytes), name)
    case .map(let entries), .partialMap(let entries):
      entries.first { !charge(4) || RuleBytes.equal($0.key, name) }.map { stopped == nil ? $0.value : stopFailure }
    case .object(let object): objectEntry(object, name, property: property)
    default: nil
    }
  }

  /// The number of entries after which a lookup charges for them.
  private static let passedMax = 4096

  private func encodedEntry(_ map: EncodedMap, _ name: UnsafeRawBufferPointer) -> RuleValue? {
    do throws(WireError) {
      var entries = map.makeIterator()
      var passed = 0
      while let entry = try entries.next() {
        switch EncodedMap.compare(entry.key, name) {
        case .less: passed += 1
        case .equal: return charge(16 * passed) ? value(entry.value) : stopFailure
        case .greater: return charge(16 * passed) ? nil : stopFailure
        }
        if passed == Self.passedMax {
          guard charge(16 * passed) else { return stopFailure }
          passed = 0
        }
      }
      return charge(16 * passed) ? nil : stopFailure
    } catch {
      return failure(.damaged)
    }
  }

  /// Returns the value bound to a variable of a path.
  private func variable(_ name: UnsafeRawBufferPointer, of segments: UnsafeBufferPointer<PathSegment>) -> RuleValue {
    guard let first = segments.firstIndex(where: { $0.kind != .simple && RuleBytes.equal($0.name, name) }) else {
      return failure(.undefinedProperty, text: name)
    }
    switch segments[first].kind {
    case .simple, .capture, .globCapture: return failure(.unboundVariable, text: name)
    case .boundCapture: return .string(segments[first].text)
    case .boundGlob:
      var end = first + 1
      while end < segments.count, segments[end].kind == .boundGlob, !segments[end].startsGlob { end += 1 }
      return copy(segments, first..<end)
    }
  }

  /// Returns a new path with some segments as simple ones.
  private func copy(_ segments: UnsafeBufferPointer<PathSegment>, _ range: Range<Int>) -> RuleValue {
    guard let parts = arena.take(PathSegment.self, range.count) else { return outOfMemory() }
    for (place, index) in range.enumerated() {
      (parts + place).initialize(to: PathSegment(segments[index].text))
    }
    return .path(UnsafeBufferPointer(start: parts, count: range.count))
  }

  /// Returns a new path with some segments, in which those of a glob are simple ones.
  private func flattened(_ segments: UnsafeBufferPointer<PathSegment>, _ range: Range<Int>) -> RuleValue {
    guard let parts = arena.take(PathSegment.self, range.count) else { return outOfMemory() }
    for (place, index) in range.enumerated() {
      let segment = segments[index]
      (parts + place).initialize(to: segment.kind == .boundGlob ? PathSegment(segment.text) : segment)
    }
    return .path(UnsafeBufferPointer(start: parts, count: range.count))
  }

  // MARK: Index and range

  private func outOfBounds(_ index: Int64, _ size: Int) -> RuleValue {
    failure(.indexOutOfBounds, text: "", .int(index), .int(Int64(size)))
  }

  /// Evaluates `base[index]`.
  func index(_ base: RuleValue, _ index: RuleValue) -> RuleValue {
    switch base {
    case .failure: return base
    case .null: return failure(.nullValue)
    case .list, .encodedList, .string, .path, .map, .encodedMap, .encodedFields, .object, .partialMap: break
    case .partialKeys(_, isSet: false): return failure(.unknownByQuery)
    default: return failure(.unknownFunction, text: RuleBytes.of("[]"))
    }
    switch (base, index) {
    case (_, .failure): return index
    case (.list(let items), .int(let place)):
      return items.indices.contains(Int(place)) ? items[Int(place)] : outOfBounds(place, items.count)
    case (.encodedList(let bytes), .int(let place)): return encodedItem(bytes, place)
    case (.string(let text), .int(let place)):
      // Two passes: one counts, one finds the place.
      guard charge(2 * text.count) else { return stopFailure }
      let count = UTF16Text.count(text)
      guard (0..<Int64(count)).contains(place) else { return outOfBounds(place, count) }
      return slice(text, Int(place), Int(place) + 1)
    case (.path(let segments), .int(let place)):
      if let unbound = segments.first(where: { !$0.isBound }) { return failure(.unboundVariable, text: unbound.name) }
      guard (0..<Int64(segments.count)).contains(place) else { return outOfBounds(place, segments.count) }
      return .string(segments[Int(place)].text)
    case (.path(let segments), .string(let name)): return variable(name, of: segments)
    case (.map, .string(let name)), (.encodedMap, .string(let name)), (.encodedFields, .string(let name)),
      (.object, .string(let name)), (.partialMap, .string(let name)):
      return member(base, name, property: -1)
    default: return failure(.operands, text: "[]", base, index)
    }
  }

  private func encodedItem(_ bytes: UnsafeRawBufferPointer, _ place: Int64) -> RuleValue {
    guard charge(bytes.count >> 4) else { return stopFailure }
    var items = EncodedArray(bytes).makeIterator()
    var count: Int64 = 0
    do throws(WireError) {
      while let item = try items.next() {
        guard charge(8) else { return stopFailure }
        if count == place { return value(item) }
        count += 1
      }
    } catch {
      return failure(.damaged)
    }
    return outOfBounds(place, Int(count))
  }

  private func slice(_ text: UnsafeRawBufferPointer, _ from: Int, _ to: Int) -> RuleValue {
    guard let part = UTF16Text.slice(text, from: from, to: to, &arena) else { return outOfMemory() }
    return .string(part)
  }

  /// Evaluates `base[from:to]`. A missing limit is `null`. A limit out of range is an error; slices do not clamp.
  func range(_ base: RuleValue, _ from: RuleValue, _ to: RuleValue) -> RuleValue {
    let size: Int
    switch base {
    case .failure: return base
    case .null: return failure(.nullValue)
    case .list(let items): size = items.count
    case .encodedList:
      guard let items = self.items(base) else { return stopFailure }
      return range(.list(items), from, to)
    case .string(let text):
      guard charge(2 * text.count) else { return stopFailure }
      size = UTF16Text.count(text)
    case .path(let segments): size = segments.count
    case .partialKeys(_, isSet: false): return failure(.unknownByQuery)
    default: return failure(.unknownFunction, text: RuleBytes.of("@range"))
    }
    if from.isFailure { return from }
    if to.isFailure { return to }
    let start: Int64
    let end: Int64
    switch (from, to) {
    case (.null, .null): (start, end) = (0, Int64(size))
    case (.null, .int(let last)): (start, end) = (0, last)
    case (.int(let first), .null): (start, end) = (first, Int64(size))
    case (.int(let first), .int(let last)): (start, end) = (first, last)
    default: return failure(.operands, text: "[:]", base, from, to)
    }
    // Without limits, the slice is the whole value.
    if case (.null, .null) = (from, to) { return base }
    if case .path(let segments) = base, let unbound = segments.first(where: { !$0.isBound }) {
      return failure(.unboundVariable, text: unbound.name)
    }
    let valid = 0..<Int64(size)
    if !valid.contains(start) {
      return outOfBounds(start, size)
    } else if !valid.contains(end &- 1) {
      return outOfBounds(end &- 1, size)
    } else if start > end {
      return failure(.illegalRange, text: "", .int(start), .int(end))
    }
    switch base {
    case .list(let items): return .list(UnsafeBufferPointer(rebasing: items[Int(start)..<Int(end)]))
    case .string(let text): return slice(text, Int(start), Int(end))
    case .path(let segments):
      // In a slice, the segments of a glob become simple ones, and captures stay captures.
      let part = Int(start)..<Int(end)
      if segments[part].contains(where: { $0.kind == .boundGlob }) { return flattened(segments, part) }
      return .path(UnsafeBufferPointer(rebasing: segments[part]))
    default: return failure(.damaged)
    }
  }
}
