package import LogEngine

/// One entry of the log that the nodes of a cluster share: the effect of a group of commits, or a change of the owner.
package struct SharedEntry: Equatable, Sendable {
  /// The numbers are in the tables of clusters. Never reuse one.
  package enum Kind: UInt8, Sendable {
    /// The body is the effect of a group of commits on one store.
    case batch = 1
    /// The first entry of an epoch. The body is a ``TakeoverNote``.
    case takeover = 2
    /// The last entry of an epoch whose owner gave the store away. It has no body.
    case handover = 3
  }

  package let kind: Kind
  /// The position after this entry.
  package let position: LogPosition
  package let body: [UInt8]

  /// Makes the entry that follows `previous`.
  package init(_ kind: Kind, _ body: [UInt8], after previous: LogPosition, epoch: UInt64, secret: UInt64) {
    self.kind = kind
    self.body = body
    position = body.withUnsafeBytes {
      previous.following($0, kind: kind.rawValue, epoch: epoch, secret: secret)
    }
  }

  /// Wraps an entry that was read, which ``follows(_:secret:)`` must check.
  package init(kind: Kind, position: LogPosition, body: [UInt8]) {
    self.kind = kind
    self.position = position
    self.body = body
  }

  /// Whether this entry continues the history up to `previous`.
  package func follows(_ previous: LogPosition, secret: UInt64) -> Bool {
    position.epoch >= previous.epoch
      && SharedEntry(kind, body, after: previous, epoch: position.epoch, secret: secret) == self
  }
}

/// The body of a takeover entry.
package struct TakeoverNote: Equatable, Sendable {
  package let owner: NodeSession
  /// No commit of the new epoch may have a version at or below this one, in microseconds since 1970. A former owner may have
  /// promised a reader that no such commit comes.
  package let floor: Int64

  package init(owner: NodeSession, floor: Int64) {
    self.owner = owner
    self.floor = floor
  }

  /// Decodes a body. Returns `nil` if its length is wrong.
  package init?(_ body: [UInt8]) {
    guard body.count == 20 else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { body[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    owner = NodeSession(node: UInt32(number(0..<4)), session: number(4..<12))
    floor = Int64(bitPattern: number(12..<20))
  }

  /// The encoded form: node, session and floor, little-endian.
  package var body: [UInt8] {
    withUnsafeBytes(of: owner.node.littleEndian) { [UInt8]($0) }
      + withUnsafeBytes(of: owner.session.littleEndian) { [UInt8]($0) }
      + withUnsafeBytes(of: floor.littleEndian) { [UInt8]($0) }
  }
}
