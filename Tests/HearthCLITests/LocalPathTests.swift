import Testing

@testable import HearthCLI

/// Paths are split as the system splits them, even if Swift treats several bytes as one `Character`.
@Suite struct LocalPathTests {
  @Test(arguments: [
    ("a/b", "a"), ("a", "."), ("/a", "/"), ("/a/b", "/a"), ("a/b/c", "a/b"), ("", "."), ("a//b", "a/"),
    ("a/\u{301}b", "a"), ("/\u{301}b", "/"), ("a\u{600}/b", "a\u{600}"), ("a/\u{200D}", "a"),
  ])
  func theFolderEndsAtTheLastSlash(path: String, folder: String) { #expect(LocalPath.folder(of: path) == folder) }

  @Test(arguments: [
    ("a/", "a"), ("a//", "a"), ("a", "a"), ("/", "/"), ("//", "/"), ("a\u{600}/", "a\u{600}"), ("", ""),
    ("a/\u{301}", "a/\u{301}"),
  ])
  func lastSlashesAreIgnored(path: String, expected: String) { #expect(LocalPath.withoutLastSlashes(path) == expected) }
}
