import Testing

/// The files of the Debian package agree with the manual.
@Suite struct PackagingTests {
  @Test func theServiceMayWriteWhereTheManualPutsDataAndBackups() {
    let unit = Repository.text(of: "packaging/hearth.service")
    let manual = Repository.text(of: "docs/operating.md")
    var writable = ["/var/lib/hearth"]
    for match in unit.matches(of: /(?m)^ReadWritePaths=(.*)$/) {
      writable += match.1.split(separator: " ").map { String($0.drop { $0 == "-" }) }
    }
    // A drop-in that the manual shows extends the unit.
    for match in manual.matches(of: /\[Service\]\\nReadWritePaths=([^\\']+)/) { writable.append(String(match.1)) }
    let paths = manual.matches(of: /"(?:data|backup-to)": "(\/[^"]+)"/).map { String($0.1) }
    #expect(paths.contains("/var/backups/hearth") && paths.contains("/var/lib/hearth/data"))
    for path in paths {
      #expect(writable.contains { path == $0 || path.hasPrefix($0 + "/") }, "the unit does not allow writes to \(path)")
    }
    #expect(unit.contains("\nStateDirectory=hearth\n"))
  }

  @Test func theManualNeverStopsTheServiceWithoutItsSocket() {
    let manual = Repository.text(of: "docs/operating.md")
    #expect(manual.contains(/systemctl stop hearth\.socket hearth\.service/))
    #expect(!manual.contains(/systemctl stop hearth(?:\.service)?\n/))
  }
}
