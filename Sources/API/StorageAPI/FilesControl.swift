import DatabaseService
import Files
import FileService
import GatewayCore
import RulesEngine
import Transport
import WireFormat

/// Handles the requests with which test suites control an emulator's files: `PUT /internal/setRules`
/// (storage-api.md, section 13).
enum FilesControl {
  /// Replaces the rules.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed.
  static func setRules(
    _ storageRequest: StorageRequest, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    let upload: RulesUpload?
    do throws(WireError) {
      upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
        RulesUpload(root)
      }
    } catch { throw .invalid(error.description) }
    guard let upload else { throw .invalid("The body must be {\"rules\": {\"files\": […]}}.") }
    storageRequest.work { () throws(FilesError) in
      let ruleset: Ruleset
      do throws(RulesetError) {
        ruleset = try Ruleset(compiling: upload.text, service: FileRules.service)
      } catch { throw .invalid("There was an error updating rules:\n\(error.summary)") }
      try storageRequest.service.setRules(ruleset, as: storageRequest.caller)
    } then: {
      storageRequest.send { $0.member("message", "Rules updated successfully") }
    }
  }
}
