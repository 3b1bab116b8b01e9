import DocumentModel
import KeyValue
import Synchronization
import WireFormat

/// The operators of a project: adds, lists, changes and removes them.
///
/// The list is in memory, so it is read once. Any number of threads may use it.
package final class Operators: Sendable {
  /// The most operators at one time.
  package static let operatorsMax = 100
  /// The shortest password of an operator, in characters.
  package static let passwordCharactersMin = 10

  private let store: any KeyValueStore
  private let now: @Sendable () -> Int64
  private let known: Mutex<[String: Operator]>
  /// Serializes changes, each of which reads the operator that it changes. It is held during a disk sync; readers do not
  /// take it.
  private let changes = Mutex(())
  /// Called with the name of each operator whose sessions must end.
  private let observers = Mutex<[@Sendable (String) -> Void]>([])

  /// Reads the operators of a store.
  /// - Throws: ``StorageError`` if the store fails; `corruption` if a row is not valid.
  init(store: any KeyValueStore, now: @escaping @Sendable () -> Int64) throws(StorageError) {
    self.store = store
    self.now = now
    var found: [String: Operator] = [:]
    for (name, row) in try store.rows(AccountsKey(.operators), limit: .max) {
      guard let person = Operator(name: String(decoding: name, as: UTF8.self), row: row) else {
        throw .corruption(path: "the account store", detail: "the row of an operator is not valid")
      }
      found[person.name] = person
    }
    known = Mutex(found)
  }

  /// All operators, by name.
  package var all: [Operator] { known.withLock { $0.values.sorted { $0.name < $1.name } } }

  /// Returns the operator with a name, or `nil` if none has it. Cost: one lock.
  package func find(_ name: String) -> Operator? { known.withLock { $0[name] } }

  /// Calls `end` with the name of each operator that is removed, or whose password or role changes, on the thread that
  /// changes it. It must return quickly.
  func observe(_ end: @escaping @Sendable (String) -> Void) { observers.withLock { $0.append(end) } }

  /// Adds an operator. Cost: a password hash and a disk sync; do not call it on an event loop.
  /// - Throws: ``OperatorError`` if the name or the password is not acceptable, or the store fails.
  package func add(
    _ name: String, role: OperatorRole, password: String, work: PasswordWork = .standard
  ) throws(OperatorError) {
    guard Operator.isName(name) else {
      throw .refused(
        "an operator's name has 1 to 64 lower-case letters, digits, dots, dashes, underscores and @, and begins with a "
          + "letter")
    }
    try requireRoom(for: name)
    let hash = try Self.hash(password, of: name, work)
    let person = Operator(name: name, role: role, passwordHash: hash, createdSeconds: now() / 1_000_000)
    try changes.withLock { (_) throws(OperatorError) in
      // Another thread may have added the name during the hash.
      try requireRoom(for: name)
      try put(person)
    }
    endSessions(of: name)
  }

  private func requireRoom(for name: String) throws(OperatorError) {
    guard find(name) == nil else { throw .refused("an operator named \(name) already exists") }
    guard all.count < Self.operatorsMax else { throw .refused("\(Self.operatorsMax) operators exist; remove some") }
  }

  /// Sets the password of an operator and ends the operator's sessions. Cost: as for ``add(_:role:password:work:)``.
  /// - Throws: ``OperatorError`` if no operator has the name, the password is not acceptable, or the store fails.
  package func setPassword(
    _ password: String, of name: String, work: PasswordWork = .standard
  ) throws(OperatorError) {
    guard find(name) != nil else { throw .unknown(name) }
    let hash = try Self.hash(password, of: name, work)
    try change(name) { $0.passwordHash = hash }
  }

  /// Sets the role of an operator and ends the operator's sessions.
  /// - Throws: ``OperatorError`` if no operator has the name, or the store fails.
  package func setRole(_ role: OperatorRole, of name: String) throws(OperatorError) {
    try change(name) { $0.role = role }
  }

  /// Changes the operator that has the name now. The operator may have been changed or removed since the caller looked.
  private func change(_ name: String, _ edit: (inout Operator) -> Void) throws(OperatorError) {
    try changes.withLock { (_) throws(OperatorError) in
      guard var person = find(name) else { throw .unknown(name) }
      edit(&person)
      try put(person)
    }
    endSessions(of: name)
  }

  /// Removes an operator and ends the operator's sessions.
  /// - Throws: ``OperatorError`` if no operator has the name, or the store fails.
  package func remove(_ name: String) throws(OperatorError) {
    try changes.withLock { (_) throws(OperatorError) in
      guard find(name) != nil else { throw .unknown(name) }
      do throws(StorageError) {
        try store.write { (txn) throws(StorageError) in
          try txn.remove(AccountsKey(.operators).ending(name).bytes)
        }
      } catch { throw .storage(error) }
      known.withLock { $0[name] = nil }
    }
    endSessions(of: name)
  }

  /// Stores an operator. The caller holds `changes`.
  private func put(_ person: Operator) throws(OperatorError) {
    do throws(StorageError) {
      try store.write { (txn) throws(StorageError) in
        try txn.put(AccountsKey(.operators).ending(person.name).bytes, person.row)
      }
    } catch { throw .storage(error) }
    known.withLock { $0[person.name] = person }
  }

  private func endSessions(of name: String) {
    for end in observers.withLock({ $0 }) { end(name) }
  }

  private static func hash(
    _ password: String, of name: String, _ work: PasswordWork
  ) throws(OperatorError) -> PasswordHash {
    guard password.count >= passwordCharactersMin, password.utf8.count <= UserLimits.passwordBytesMax else {
      throw .refused(
        "an operator's password has at least \(passwordCharactersMin) characters, and at most "
          + "\(UserLimits.passwordBytesMax) bytes")
    }
    // A name of a few letters may be in a random password, which is long enough without it.
    let rest = password.lowercased().split(separator: name).joined()
    guard rest.count >= passwordCharactersMin, Set(password).count >= 5 else {
      throw .refused(
        "the password is too easy to guess: without the name it has at least \(passwordCharactersMin) characters, 5 of "
          + "them different")
    }
    do throws(AccountError) { return try Argon2.hash(password, work) } catch {
      throw .refused("the password cannot be hashed: there is not enough memory")
    }
  }
}

extension Operators {
  /// Returns the operators as JSON: `{"operators": [{"name": …, "role": …, "createdSeconds": …}]}`.
  package static func list(_ operators: [Operator]) -> [UInt8] {
    MapValue([
      (
        "operators",
        .array(
          operators.map { person in
            .map(
              MapValue([
                ("name", .string(person.name)), ("role", .string(person.role.rawValue)),
                ("createdSeconds", .integer(person.createdSeconds)),
              ]))
          })
      )
    ]).json
  }
}
