import DocumentModel
import WireFormat

/// A sequence of documents of five scalar fields with different values, the same in every run.
struct SampleDocuments {
  private var generator = SampleGenerator(state: 0x6865_6172_7468)

  /// Returns the fields of the next document.
  mutating func next() -> EncodedFields {
    let random = generator.next()
    return EncodedFields(
      MapValue([
        ("title", .string("Task \(random % 100_000)")), ("done", .boolean(random & 1 == 0)),
        ("count", .integer(Int64(random >> 40))), ("score", .double(Double(random >> 44) / 16)),
        ("createdAt", .timestamp(Timestamp(uncheckedMicroseconds: 1_743_085_800_000_000 + Int64(random >> 20)))),
      ]))
  }

  /// Returns the next document as a member of a fixture tree.
  mutating func nextJSON() -> String {
    let random = generator.next()
    let seconds = 10 + (random >> 20) % 49
    return """
      {"title": "Task \(random % 100_000)", "done": \(random & 1 == 0), "count": \(random >> 40), \
      "score": \(Double(random >> 44) / 16 + 0.03125), "createdAt": {"$timestamp": "2025-03-27T14:30:\(seconds)Z"}}
      """
  }
}

/// A small generator of uniformly distributed numbers.
struct SampleGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
