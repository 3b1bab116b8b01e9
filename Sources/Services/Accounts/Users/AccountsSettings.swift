import KeyValue
package import WireFormat

/// What a project lets people do by themselves. Kept in the store; administrators change it while the server runs.
package struct AccountsSettings: Equatable, Sendable {
  /// Whether guests may come.
  package var allowsAnonymous = true
  /// Whether people sign in with a password.
  package var allowsPassword = true
  /// Whether people sign in by a link sent to them.
  package var allowsEmailLink = true
  /// Whether people make accounts for themselves; otherwise only administrators do.
  package var allowsSignUp = true
  /// Whether people may delete their own account.
  package var allowsDeletion = true
  /// Whether answers keep to themselves who has an account.
  package var hidesEmails = true

  /// The settings of a new project.
  package init() {}

  /// These settings without what others do not allow either.
  package func closed(by others: AccountsSettings) -> AccountsSettings {
    var settings = self
    settings.allowsAnonymous = allowsAnonymous && others.allowsAnonymous
    settings.allowsPassword = allowsPassword && others.allowsPassword
    settings.allowsEmailLink = allowsEmailLink && others.allowsEmailLink
    settings.allowsSignUp = allowsSignUp && others.allowsSignUp
    settings.allowsDeletion = allowsDeletion && others.allowsDeletion
    return settings
  }

  /// Appends the settings in the shape of the API's `Config`.
  package func append(to json: inout JSONWriter, project: String) {
    json.beginObject()
    json.key("name")
    json.string("projects/\(project)/config")
    json.key("signIn")
    json.beginObject()
    json.key("email")
    json.beginObject()
    json.key("enabled")
    json.bool(allowsPassword)
    json.key("passwordRequired")
    json.bool(!allowsEmailLink)
    json.endObject()
    json.key("anonymous")
    json.beginObject()
    json.key("enabled")
    json.bool(allowsAnonymous)
    json.endObject()
    json.key("allowDuplicateEmails")
    json.bool(false)
    json.endObject()
    json.key("client")
    json.beginObject()
    json.key("permissions")
    json.beginObject()
    json.key("disabledUserSignup")
    json.bool(!allowsSignUp)
    json.key("disabledUserDeletion")
    json.bool(!allowsDeletion)
    json.endObject()
    json.endObject()
    json.key("emailPrivacyConfig")
    json.beginObject()
    json.key("enableImprovedEmailPrivacy")
    json.bool(hidesEmails)
    json.endObject()
    json.endObject()
  }

  /// Takes over what a `Config` says; what it does not mention stays.
  /// - Throws: `NOT_IMPLEMENTED` for several accounts with one e-mail address.
  package mutating func apply(_ config: AccountsJSON) throws(AccountError) {
    let signIn = config["signIn"]
    if signIn?["allowDuplicateEmails"]?.flag == true {
      throw AccountError(.notImplemented, "An e-mail address belongs to one account here.")
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
  /// The settings that are stored, over `defaults`.
  package func settings(over defaults: AccountsSettings) throws -> AccountsSettings {
    var settings = defaults
    if let stored = try store.read(AccountsKey(.settings).bytes) { try settings.apply(AccountsJSON(parsing: stored)) }
    return settings
  }

  /// Stores settings.
  package func put(_ settings: AccountsSettings) throws {
    var json = JSONWriter(.compact)
    settings.append(to: &json, project: "")
    try write { try $0.transaction.put(AccountsKey(.settings).bytes, json.bytes) }
  }
}
