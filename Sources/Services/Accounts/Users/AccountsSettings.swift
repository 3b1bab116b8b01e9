import KeyValue
package import WireFormat

/// The operations that a project allows its users. Stored; administrators change the settings while the server
/// runs.
package struct AccountsSettings: Equatable, Sendable {
  /// Whether users can sign in anonymously.
  package var allowsAnonymous = true
  /// Whether users can sign in with a password.
  package var allowsPassword = true
  /// Whether users can sign in with a link sent by mail.
  package var allowsEmailLink = true
  /// Whether users can create accounts; otherwise only administrators can.
  package var allowsSignUp = true
  /// Whether users can delete their own account.
  package var allowsDeletion = true
  /// Whether responses hide which e-mail addresses have an account.
  package var hidesEmails = true

  /// Creates the settings of a new project.
  package init() {}

  /// Returns these settings with everything disabled that `others` disable.
  package func closed(by others: AccountsSettings) -> AccountsSettings {
    var settings = self
    settings.allowsAnonymous = allowsAnonymous && others.allowsAnonymous
    settings.allowsPassword = allowsPassword && others.allowsPassword
    settings.allowsEmailLink = allowsEmailLink && others.allowsEmailLink
    settings.allowsSignUp = allowsSignUp && others.allowsSignUp
    settings.allowsDeletion = allowsDeletion && others.allowsDeletion
    return settings
  }

  /// Appends the settings in the form of the API's `Config`.
  package func append(to json: inout JSONWriter, project: String) {
    json.object { json in
      json.text("name", "projects/\(project)/config")
      json.object("signIn") { json in
        json.object("email") { json in
          json.boolean("enabled", allowsPassword)
          json.boolean("passwordRequired", !allowsEmailLink)
        }
        json.object("anonymous") { $0.boolean("enabled", allowsAnonymous) }
        json.boolean("allowDuplicateEmails", false)
      }
      json.object("client") { json in
        json.object("permissions") { json in
          json.boolean("disabledUserSignup", !allowsSignUp)
          json.boolean("disabledUserDeletion", !allowsDeletion)
        }
      }
      json.object("emailPrivacyConfig") { $0.boolean("enableImprovedEmailPrivacy", hidesEmails) }
    }
  }

  /// Changes the settings that a `Config` contains. The others stay as they are.
  /// - Throws: ``AccountError`` `NOT_IMPLEMENTED` if the config allows several accounts with one e-mail address.
  package mutating func apply(_ config: JSONTree) throws(AccountError) {
    let signIn = config["signIn"]
    if signIn?["allowDuplicateEmails"]?.flag == true {
      throw AccountError(.notImplemented, "An e-mail address can belong to only one account.")
    }
    if let value = signIn?["email"]?["enabled"]?.flag { allowsPassword = value }
    if let value = signIn?["email"]?["passwordRequired"]?.flag { allowsEmailLink = !value }
    if let value = signIn?["anonymous"]?["enabled"]?.flag { allowsAnonymous = value }
    let permissions = config["client"]?["permissions"]
    if let value = permissions?["disabledUserSignup"]?.flag { allowsSignUp = !value }
    if let value = permissions?["disabledUserDeletion"]?.flag { allowsDeletion = !value }
    if let value = config["emailPrivacyConfig"]?["enableImprovedEmailPrivacy"]?.flag { hidesEmails = value }
  }
}

extension UserStore {
  /// Returns the stored settings, with `defaults` for those that are not stored.
  /// - Throws: ``StorageError`` if the read fails; ``AccountError`` or `WireError` if the stored settings are not
  ///   valid.
  package func settings(over defaults: AccountsSettings) throws -> AccountsSettings {
    var settings = defaults
    if let stored = try store.read(AccountsKey(.settings).bytes) { try settings.apply(JSONTree(parsing: stored)) }
    return settings
  }

  /// Stores settings.
  /// - Throws: ``StorageError`` if the write fails.
  package func put(_ settings: AccountsSettings) throws {
    var json = JSONWriter(.compact)
    settings.append(to: &json, project: "")
    try write { try $0.transaction.put(AccountsKey(.settings).bytes, json.bytes) }
  }
}
