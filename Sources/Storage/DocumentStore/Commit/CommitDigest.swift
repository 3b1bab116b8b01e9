import CXXHash
import DocumentModel
import WireFormat

/// A digest of the writes of a commit, which shows whether two requests with one ID are the same.
///
/// Digests are stored, and nodes of different releases compare them: a change of the form makes repeated requests fail
/// with ``CommitError/idReused`` while a cluster is upgraded.
enum CommitDigest {
  /// Returns the digest of writes. Cost: reads all their bytes once.
  static func of(_ writes: [Write]) -> UInt64 {
    var digest = UInt64(writes.count)
    var head: [UInt8] = []
    for write in writes {
      head.removeAll(keepingCapacity: true)
      append(write.key.path.bytes, to: &head)
      append(write.precondition, to: &head)
      var body: [UInt8] = []
      switch write.operation {
      case .delete: head.append(0)
      case .verify: head.append(1)
      case .update(let fields, let mask):
        head.append(mask == nil ? 2 : 3)
        body = fields.bytes
        if let mask { append(mask.paths, to: &head) }
      }
      append(UInt64(write.transforms.count), to: &head)
      for transform in write.transforms { append(transform, to: &head) }
      digest = hash(head, after: digest)
      digest = hash(body, after: digest)
    }
    return digest
  }

  private static func hash(_ bytes: [UInt8], after digest: UInt64) -> UInt64 {
    XXH3_64bits_withSeed(bytes, bytes.count, digest)
  }

  private static func append(_ number: UInt64, to out: inout [UInt8]) {
    withUnsafeBytes(of: number.littleEndian) { out.append(raw: $0) }
  }

  private static func append(_ bytes: some Collection<UInt8>, to out: inout [UInt8]) {
    append(UInt64(bytes.count), to: &out)
    out.append(contentsOf: bytes)
  }

  private static func append(_ paths: [FieldPath], to out: inout [UInt8]) {
    append(UInt64(paths.count), to: &out)
    for path in paths { append(path, to: &out) }
  }

  private static func append(_ path: FieldPath, to out: inout [UInt8]) {
    append(UInt64(path.segments.count), to: &out)
    for segment in path.segments { append(segment.utf8, to: &out) }
  }

  private static func append(_ precondition: Precondition, to out: inout [UInt8]) {
    switch precondition {
    case .none: out.append(0)
    case .exists(false): out.append(1)
    case .exists(true): out.append(2)
    case .updateTime(let time):
      out.append(3)
      append(UInt64(bitPattern: time.microseconds), to: &out)
    }
  }

  private static func append(_ transform: FieldTransform, to out: inout [UInt8]) {
    append(transform.path, to: &out)
    let (kind, operands): (UInt8, [Value]) =
      switch transform.kind {
      case .requestTime: (0, [])
      case .increment(let operand): (1, [operand])
      case .maximum(let operand): (2, [operand])
      case .minimum(let operand): (3, [operand])
      case .appendMissingElements(let operands): (4, operands)
      case .removeAllFromArray(let operands): (5, operands)
      }
    out.append(kind)
    var code: [UInt8] = []
    ValueCodec.append(.array(operands), to: &code)
    append(code, to: &out)
  }
}
