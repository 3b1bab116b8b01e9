import Glibc
import KeyValue

/// A check of a data file before LMDB maps it.
///
/// LMDB trusts the file: reading a page number past the file's end raises `SIGBUS`, because memory beyond the end
/// of a mapped file is not readable. So this check first reads the meta pages, the length and the roots with system
/// calls.
///
/// A healthy file can be shorter than its newest meta page says: a page that one transaction allocated at the end
/// and freed again was never written. All such pages are in LMDB's database of free pages, and no other page may be
/// missing. This check reads no other pages, and LMDB has no checksums; ``LMDBStore/verify(progress:)`` reads all
/// pages, in a process that damage may crash.
struct DataFileCheck: ~Copyable {
  /// Checks a file that another process may be writing.
  static func check(_ file: borrowing Descriptor) throws(StorageError) {
    var attempts = 10
    while true {
      let meta = try newestMeta(file)
      do throws(StorageError) {
        try check(file, against: meta)
        return
      } catch {
        // A commit between two reads makes them disagree. It also changes the newest meta page, so try again then.
        attempts -= 1
        guard attempts > 0, try newestMeta(file).transaction != meta.transaction else { throw error }
      }
    }
  }

  private static func check(_ file: borrowing Descriptor, against meta: MetaPage) throws(StorageError) {
    let length = try file.length()
    let pagesInFile = length / meta.pageBytes
    let pages = meta.lastPage + 1
    // Check the newest only: after LMDB took back a meta page that it could not write, that page has new roots.
    for root in [meta.freePages.root, meta.main.root] where root != MetaPage.noPage {
      guard (2...max(2, meta.lastPage)).contains(root) else {
        throw .corruption(
          path: file.path,
          detail: "the newest meta page has root page \(root), but the last page is \(meta.lastPage)")
      }
      guard root < pagesInFile else { throw tooShort(file.path, meta, length) }
      let page = try readPage(root, of: file, meta)
      guard page.number == root, page.isBranch || page.isLeaf else {
        throw .corruption(path: file.path, detail: "page \(root) is not the root of a tree, but the meta page says so")
      }
    }
    guard pagesInFile < pages else { return }
    var search = MissingPageSearch(pagesInFile: pagesInFile, meta: meta)
    guard try search.countFreeMissingPages(file) == pages - pagesInFile else {
      throw tooShort(file.path, meta, length)
    }
  }

  private static func tooShort(_ path: String, _ meta: MetaPage, _ length: Int) -> StorageError {
    .corruption(
      path: path,
      detail: "the file has \(length) bytes, but its newest meta page needs \((meta.lastPage + 1) * meta.pageBytes)")
  }

  // MARK: Meta pages

  /// The relevant part of an LMDB meta page. All numbers are in the machine's byte order.
  struct MetaPage {
    /// The value that means "no page".
    static let noPage = -1
    /// The bytes up to and including the transaction number.
    static let bytes = 152

    struct Tree {
      var flags: UInt16
      var pages: Int
      var root: Int
    }

    var pageBytes: Int
    var freePages: Tree
    var main: Tree
    var lastPage: Int
    var transaction: UInt64
  }

  private static func newestMeta(_ file: borrowing Descriptor) throws(StorageError) -> MetaPage {
    let first = try readMeta(0, at: 0, of: file)
    let second = try readMeta(1, at: first.pageBytes, of: file)
    guard first.pageBytes == second.pageBytes else {
      throw .corruption(
        path: file.path, detail: "the meta pages disagree on the page size: \(first.pageBytes), \(second.pageBytes)")
    }
    return second.transaction > first.transaction ? second : first
  }

  private static func readMeta(
    _ index: Int, at offset: Int, of file: borrowing Descriptor
  ) throws(StorageError) -> MetaPage {
    var bytes = [UInt8](repeating: 0, count: MetaPage.bytes)
    let count = try read(&bytes, at: offset, of: file)
    guard count == MetaPage.bytes else {
      throw .corruption(
        path: file.path, detail: "the file has \(try file.length()) bytes and ends inside meta page \(index)")
    }
    func damaged(_ problem: String) -> StorageError {
      .corruption(path: file.path, detail: "meta page \(index) \(problem)")
    }
    let flags = load(bytes, 10, UInt16.self)
    guard load(bytes, 16, UInt32.self) == 0xBEEF_C0DE, flags & 0x08 != 0 else {
      throw damaged("is invalid: this is not an LMDB file, or its beginning was overwritten")
    }
    let version = load(bytes, 20, UInt32.self)
    guard version == 1 else {
      throw .unsupportedFormat(path: file.path, found: "LMDB data version \(version)", supported: "1")
    }
    let meta = MetaPage(
      pageBytes: Int(load(bytes, 40, UInt32.self)),
      freePages: tree(bytes, 40),
      main: tree(bytes, 88),
      lastPage: load(bytes, 136, Int.self),
      transaction: load(bytes, 144, UInt64.self))
    guard (256...65536).contains(meta.pageBytes), meta.pageBytes & (meta.pageBytes - 1) == 0 else {
      throw damaged("has a page size of \(meta.pageBytes) bytes")
    }
    guard meta.main.flags == 0 else { throw damaged("has flags \(meta.main.flags) for the main database, not 0") }
    guard (1...(Int.max / meta.pageBytes - 1)).contains(meta.lastPage) else {
      throw damaged("has \(meta.lastPage) as the last page")
    }
    // Transactions write the two meta pages alternately.
    guard meta.transaction == 0 || Int(meta.transaction & 1) == index else {
      throw damaged("has transaction number \(meta.transaction), which belongs in the other meta page")
    }
    return meta
  }

  private static func tree(_ bytes: [UInt8], _ offset: Int) -> MetaPage.Tree {
    let pages = [8, 16, 24].map { Int(clamping: load(bytes, offset + $0, UInt64.self)) }
    return MetaPage.Tree(
      flags: load(bytes, offset + 4, UInt16.self),
      pages: pages.reduce(0) { $0.addingReportingOverflow($1).overflow ? Int.max : $0 + $1 },
      root: load(bytes, offset + 40, Int.self))
  }

  // MARK: Tree pages

  /// One page of a B+ tree.
  struct TreePage {
    var bytes: [UInt8]

    var number: Int { load(bytes, 0, Int.self) }
    private var flags: UInt16 { load(bytes, 10, UInt16.self) }
    var isBranch: Bool { flags & 0x0F == 0x01 }
    var isLeaf: Bool { flags & 0x0F == 0x02 }
    var nodeCount: Int { max(0, Int(load(bytes, 12, UInt16.self)) - 16) / 2 }

    /// Returns the offset of node `index`, or `nil` if the node exceeds the page.
    private func nodeStart(_ index: Int) -> Int? {
      let slot = 16 + 2 * index
      guard slot + 2 <= bytes.count else { return nil }
      let start = Int(load(bytes, slot, UInt16.self))
      return start + 8 <= bytes.count ? start : nil
    }

    /// Returns the page number in a branch's node.
    func child(_ index: Int) -> Int? {
      guard let start = nodeStart(index) else { return nil }
      let low = Int(load(bytes, start, UInt16.self))
      let middle = Int(load(bytes, start + 2, UInt16.self))
      let high = Int(load(bytes, start + 4, UInt16.self))
      return low | middle << 16 | high << 32
    }

    enum NodeValue {
      case inside(Range<Int>)
      case onOverflowPage(number: Int, count: Int)
    }

    /// Returns the location of the value of a leaf's node.
    func value(_ index: Int) -> NodeValue? {
      guard let start = nodeStart(index) else { return nil }
      let count = Int(load(bytes, start, UInt16.self)) | Int(load(bytes, start + 2, UInt16.self)) << 16
      let flags = load(bytes, start + 4, UInt16.self)
      let valueStart = start + 8 + Int(load(bytes, start + 6, UInt16.self))
      if flags & 0x01 != 0 {
        guard valueStart + 8 <= bytes.count else { return nil }
        return .onOverflowPage(number: load(bytes, valueStart, Int.self), count: count)
      }
      guard valueStart + count <= bytes.count else { return nil }
      return .inside(valueStart..<valueStart + count)
    }
  }

  private static func readPage(
    _ number: Int, of file: borrowing Descriptor, _ meta: MetaPage
  ) throws(StorageError) -> TreePage {
    var bytes = [UInt8](repeating: 0, count: meta.pageBytes)
    guard try read(&bytes, at: number * meta.pageBytes, of: file) == bytes.count else {
      throw tooShort(file.path, meta, try file.length())
    }
    return TreePage(bytes: bytes)
  }

  private static func read(
    _ bytes: inout [UInt8], at offset: Int, of file: borrowing Descriptor
  ) throws(StorageError) -> Int {
    var outcome: Result<Int, StorageError> = .success(0)
    bytes.withUnsafeMutableBytes { buffer in
      do throws(StorageError) {
        outcome = .success(try file.read(into: buffer, at: offset))
      } catch {
        outcome = .failure(error)
      }
    }
    return try outcome.get()
  }

  // MARK: Free pages

  /// Counts the free pages past the end of the file.
  private struct MissingPageSearch {
    let pagesInFile: Int
    let meta: MetaPage
    private var pagesLeft: Int
    private var found = 0

    init(pagesInFile: Int, meta: MetaPage) {
      self.pagesInFile = pagesInFile
      self.meta = meta
      pagesLeft = meta.freePages.pages
    }

    mutating func countFreeMissingPages(_ file: borrowing Descriptor) throws(StorageError) -> Int {
      if meta.freePages.root != MetaPage.noPage { try visit(meta.freePages.root, file) }
      return found
    }

    private mutating func visit(_ number: Int, _ file: borrowing Descriptor) throws(StorageError) {
      pagesLeft -= 1
      guard pagesLeft >= 0, (2..<pagesInFile).contains(number) else { throw damaged(file, number) }
      let page = try DataFileCheck.readPage(number, of: file, meta)
      guard page.number == number, page.isBranch || page.isLeaf else { throw damaged(file, number) }
      for index in 0..<page.nodeCount {
        if page.isBranch {
          guard let child = page.child(index) else { throw damaged(file, number) }
          try visit(child, file)
          continue
        }
        switch page.value(index) {
        case .inside(let range):
          count(Array(page.bytes[range]))
        case .onOverflowPage(let first, let count):
          guard (2..<pagesInFile).contains(first) else { throw damaged(file, number) }
          var list = [UInt8](repeating: 0, count: count)
          _ = try DataFileCheck.read(&list, at: first * meta.pageBytes + 16, of: file)
          self.count(list)
        case nil:
          throw damaged(file, number)
        }
      }
    }

    /// Counts the missing pages in one record: a count followed by page numbers.
    private mutating func count(_ list: [UInt8]) {
      for offset in stride(from: 8, to: list.count - 7, by: 8) {
        let page = load(list, offset, Int.self)
        if (pagesInFile...meta.lastPage).contains(page) { found += 1 }
      }
    }

    private func damaged(_ file: borrowing Descriptor, _ number: Int) -> StorageError {
      .corruption(
        path: file.path,
        detail: "the file is \((meta.lastPage + 1 - pagesInFile) * meta.pageBytes) bytes shorter than its newest meta"
          + " page says, and page \(number) of the list of free pages is not readable")
    }
  }
}

/// Loads an integer at any offset of `bytes`.
private func load<Number: FixedWidthInteger & BitwiseCopyable>(
  _ bytes: [UInt8], _ offset: Int, _ type: Number.Type
) -> Number {
  bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
}
