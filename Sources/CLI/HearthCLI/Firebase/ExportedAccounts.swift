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

  /// Reads the file, and checks that each account has an ID.
  /// - Throws: `FixtureTreeError` or ``CommandFailure`` if it is not a list of accounts.
  init(_ path: String) throws {
    self.path = path
    let root = try JSONTree.read(ByteSource(file: path), bytesMax: ExportLimits.accountsBytesMax)
    guard case .object = root.kind else { throw CommandFailure.data("\(path) is not a JSON object with 'users'") }
    guard case .array(let users)? = root["users"]?.kind else {
      throw CommandFailure.data("\(path) has no array 'users'; export the accounts again")
    }
    for (index, user) in users.enumerated() {
      guard user.members != nil, let id = user["localId"]?.text, !id.isEmpty else {
        throw CommandFailure.data("\(path): user \(index + 1) has no 'localId'; export the accounts again")
      }
    }
    self.users = users
  }

  /// Imports the accounts. Those that the server rejects are reported one by one.
  /// - Throws: ``CommandFailure`` if a request fails.
  func send(to client: AccountsClient, progress: (Int, Int) -> Void) throws -> Outcome {
    var outcome = Outcome()
    let records = users.map { Self.withPlainPassword($0, &outcome) }
    let transfer = AccountsImport(client, nil, name: path)
    try transfer.sendAll(records) { progress($0, users.count) }
    outcome.failed = transfer.failures
    outcome.imported = users.count - outcome.failed
    return outcome
  }

  /// Returns a record whose password the server hashes, if the record contains the password as text.
  private static func withPlainPassword(_ user: JSONTree, _ outcome: inout Outcome) -> JSONTree {
    guard case .object(let members) = user.kind, let hash = user["passwordHash"]?.text,
      let password = password(ofFakeHash: hash)
    else { return user }
    outcome.plainPasswords += 1
    let kept = members.filter { $0.name != "passwordHash" && $0.name != "salt" }
    return JSONTree(.object(kept + [JSONTree.Member(name: "rawPassword", value: JSONTree(.string(password)))]))
  }

  private static func password(ofFakeHash hash: String) -> String? {
    guard hash.hasPrefix("fakeHash:salt=") else { return nil }
    let (bytes, mark) = (Array(hash.utf8), Array(":password=".utf8))
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
    return String(decoding: bytes[(start + mark.count)...], as: UTF8.self)
  }
}
