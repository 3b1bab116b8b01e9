import FirebaseExport
import FixtureTree
import WireFormat

/// The accounts of a Firebase export: `auth_export/accounts.json`, in the form of `accounts:batchGet`.
///
/// The emulator does not hash passwords: `passwordHash` is `fakeHash:salt=SALT:password=PASSWORD`. Hearth hashes such a
/// password when it imports the account. Source: output of firebase-tools 11 to 13 in public repositories.
struct ExportedAccounts {
  /// The outcome of an import.
  struct Outcome {
    var imported = 0
    var failed = 0
    /// The accounts whose password the export contains as text.
    var plainPasswords = 0
  }

  let path: String
  private let users: [JSONTree]

  /// Reads the file, and checks that each account has an ID of its own.
  /// - Throws: `FixtureTreeError` or ``CommandFailure`` if it is not a list of accounts.
  init(_ path: String) throws {
    self.path = path
    let root = try JSONTree.read(ByteSource(file: path), bytesMax: ExportLimits.accountsBytesMax)
    guard case .object = root.kind else { throw CommandFailure.data("\(path) is not a JSON object with 'users'") }
    guard case .array(let users)? = root["users"]?.kind else {
      throw CommandFailure.data("\(path) has no array 'users'; export the accounts again")
    }
    var seen: [[UInt8]: Int] = [:]
    for (index, user) in users.enumerated() {
      guard user.members != nil, let id = user["localId"]?.text, !id.isEmpty else {
        throw CommandFailure.data("\(path): user \(index + 1) has no 'localId'; export the accounts again")
      }
      if let earlier = seen.updateValue(index, forKey: Array(id.utf8)) {
        throw CommandFailure.data(
          "\(path): users \(earlier + 1) and \(index + 1) have the same 'localId' \"\(id)\"; remove one of them")
      }
    }
    self.users = users
  }

  /// Imports the accounts. Those that the server rejects are reported one by one, as accounts of a file of this name.
  /// - Throws: ``CommandFailure`` if a request fails.
  func send(to client: AccountsClient, name: String, progress: (Int, Int) -> Void) throws -> Outcome {
    var outcome = Outcome()
    let records = users.map { user in
      let record = Self.withPlainPassword(user)
      outcome.plainPasswords += record.hasPassword ? 1 : 0
      return record.user
    }
    let transfer = AccountsImport(client, nil, name: name)
    try transfer.sendAll(records) { progress($0, users.count) }
    outcome.failed = transfer.failures
    outcome.imported = users.count - outcome.failed
    return outcome
  }

  /// Returns a record whose password the server hashes, if the record contains the password as text.
  static func withPlainPassword(_ user: JSONTree) -> (user: JSONTree, hasPassword: Bool) {
    guard case .object(let members) = user.kind, let hash = user["passwordHash"]?.text,
      let password = password(ofFakeHash: hash)
    else { return (user, false) }
    let kept = members.filter { $0.name != "passwordHash" && $0.name != "salt" }
    let added = JSONTree.Member(name: "rawPassword", value: JSONTree(.string(password)))
    return (JSONTree(.object(kept + [added])), true)
  }

  private static func password(ofFakeHash hash: String) -> String? {
    guard hash.hasPrefix("fakeHash:salt=") else { return nil }
    let (bytes, mark) = (Array(hash.utf8), Array(":password=".utf8))
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
    return String(decoding: bytes[(start + mark.count)...], as: UTF8.self)
  }
}
