/// The advice that follows a server's error message.
enum ServerAdvice {
  /// Returns what to do about a response, or `nil` if the server's message says enough.
  static func text(httpStatus: Int, of address: String, isDefaultToken: Bool) -> String? {
    guard WebHost.isGoogles(address) else {
      guard httpStatus == 401, isDefaultToken else { return nil }
      return "this server is in production mode: pass --token with an administrator's access token, or --key with a "
        + "file that `hearth keys create` wrote"
    }
    switch httpStatus {
    case 401:
      return "sign in with --token-command 'gcloud auth print-access-token', or with --key FILE, the key of a service "
        + "account of the project"
    case 403: return "\(role(address)); the project also needs the API of \(address) to be enabled"
    case 429: return "the project's quota is used up for now; use fewer --connections, or continue later"
    default: return nil
    }
  }

  /// The role that the account needs for a service of Google.
  private static func role(_ address: String) -> String {
    if address.contains("firestore") {
      return
        "the account needs the role Cloud Datastore Viewer to export (datastore.entities.get and .list), and Cloud "
        + "Datastore User to import (datastore.entities.create and .update)"
    }
    if address.contains("identitytoolkit") {
      return "the account needs the role Firebase Authentication Admin (firebaseauth.users.get), and with it also "
        + "firebaseauth.configs.getHashConfig for the parameters of the passwords"
    }
    return "the account needs the role Storage Object Viewer to download (storage.objects.get and .list), and Storage "
      + "Object Admin to upload"
  }
}
