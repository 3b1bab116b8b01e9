import Glibc

/// The current input, in a mapped file, so that it survives a trap of the process.
///
/// Layout: the input's number (8 bytes), its length (8 bytes), its bytes.
struct CurrentInput {
  private static let headerBytes = 16
  private static let fileBytes = headerBytes + Mutator.inputBytesMax
  private let memory: UnsafeMutableRawPointer

  /// Maps a file and creates it if it does not exist. Returns `nil` if the system refuses.
  init?(file path: String) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return nil }
    defer { Glibc.close(descriptor) }
    guard ftruncate(descriptor, Self.fileBytes) == 0,
      let memory = mmap(nil, Self.fileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
    else { return nil }
    self.memory = memory
  }

  /// Unmaps the file, whose content remains.
  func unmap() { munmap(memory, Self.fileBytes) }

  /// Records an input before it runs.
  func set(_ input: [UInt8], number: Int) {
    memory.storeBytes(of: number, as: Int.self)
    memory.storeBytes(of: input.count, toByteOffset: 8, as: Int.self)
    UnsafeMutableRawBufferPointer(start: memory + Self.headerBytes, count: input.count).copyBytes(from: input)
  }

  /// The number of inputs started.
  var number: Int { memory.load(as: Int.self) }

  /// The last input started.
  var bytes: [UInt8] {
    let count = min(max(0, memory.load(fromByteOffset: 8, as: Int.self)), Mutator.inputBytesMax)
    return Array(UnsafeRawBufferPointer(start: memory + Self.headerBytes, count: count))
  }
}
