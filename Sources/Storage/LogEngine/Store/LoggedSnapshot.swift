import KeyValue

/// A snapshot of a ``LoggedStore`` whose memtables are not empty.
final class LoggedSnapshot: KeyValueSnapshot {
  /// `nil` after the end.
  private var layers: Layers?

  init(_ layers: Layers) { self.layers = layers }

  deinit { end() }

  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
    guard let layers else { preconditionFailure("a snapshot was used after its end") }
    return try layers.value(for: key)
  }

  func makeCursor() throws(StorageError) -> any KeyValueCursor {
    guard let layers else { preconditionFailure("a snapshot was used after its end") }
    return try MergingCursor(layers)
  }

  func end() {
    layers?.base.end()
    layers = nil
  }
}
