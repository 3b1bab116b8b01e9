import LogEngine

/// The body of a batch entry: the name of a store, and the effect of a group of commits on it.
///
///     0   flags (1): 1 if it is the first batch of the store in the log, 2 if the batch is sealed
///     1   length of the name (1), name
///         the bytes of a ``CommitBatch``, or what the ``BatchSeal`` made of them
///
/// A node creates a store with its first batch. A later batch of a store that a node does not have means that its data
/// file was lost.
package struct StoreBatch: Equatable, Sendable {
  package var store: StoreName
  package var isFirst: Bool
  package var isSealed: Bool
  /// The bytes after the name.
  package var content: ArraySlice<UInt8>

  private static let firstFlag: UInt8 = 1
  private static let sealedFlag: UInt8 = 2

  package init(store: StoreName, isFirst: Bool, isSealed: Bool, content: ArraySlice<UInt8>) {
    self.store = store
    self.isFirst = isFirst
    self.isSealed = isSealed
    self.content = content
  }

  /// Decodes a body. Returns `nil` if it has another form; the content is not looked at.
  package init?(_ body: [UInt8]) {
    guard body.count >= 2, body[0] & ~(Self.firstFlag | Self.sealedFlag) == 0 else { return nil }
    let end = 2 + Int(body[1])
    guard Int(body[1]) <= StoreName.bytesMax, end <= body.count,
      let store = StoreName(String(decoding: body[2..<end], as: UTF8.self))
    else { return nil }
    self.init(
      store: store, isFirst: body[0] & Self.firstFlag != 0, isSealed: body[0] & Self.sealedFlag != 0,
      content: body[end...])
  }

  /// The encoded form. Cost: one copy.
  package var body: [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(2 + store.text.utf8.count + content.count)
    body.append((isFirst ? Self.firstFlag : 0) | (isSealed ? Self.sealedFlag : 0))
    body.append(UInt8(store.text.utf8.count))
    body.append(contentsOf: store.text.utf8)
    body.append(contentsOf: content)
    return body
  }
}

/// Hides the content of batches from the engine of the log, with a key that all nodes have.
package protocol BatchSeal: Sendable {
  /// Encrypts the bytes of a batch for a store.
  func seal(_ batch: [UInt8], of store: StoreName) -> [UInt8]

  /// Decrypts what ``seal(_:of:)`` made for the same store. Returns `nil` if it is something else.
  func open(_ sealed: ArraySlice<UInt8>, of store: StoreName) -> [UInt8]?
}

/// The seal of a cluster, and the stores whose batches have it. A node accepts no batch of such a store without the
/// seal.
package struct SealedStores: Sendable {
  package var seal: any BatchSeal
  package var stores: Set<StoreName>

  package init(seal: any BatchSeal, stores: Set<StoreName> = [.accounts]) {
    self.seal = seal
    self.stores = stores
  }
}
