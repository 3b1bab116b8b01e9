import DatabaseService
import Dispatch
import DocumentModel
import Files
import RulesEngine
import GatewayCore
import Transport
import WireFormat

/// Handles the requests with which test suites control an emulator's files: `PUT /internal/setRules`
/// (storage-api.md, section 13).
struct FilesControl: Sendable {
  let storageRequest: StorageRequest
  let rules: FileRules

  init(_ storageRequest: StorageRequest, rules: FileRules) {
    self.storageRequest = storageRequest
    self.rules = rules
  }

  /// Handles a request for a path after `/internal/`.
  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) {
    guard request.method == .put, path.elementsEqual("setRules".utf8) else { return storageRequest.failUnknown() }
    let upload: RulesUpload?
    do throws(WireError) {
      upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
        RulesUpload(root)
      }
    } catch { return storageRequest.fail(.invalid(error.description)) }
    guard let upload else { return storageRequest.fail(.invalid("The body must be {\"rules\": {\"files\": […]}}.")) }
    storageRequest.work { () throws(FilesError) in
      do throws(RulesetError) {
        rules.upload(try Ruleset(compiling: upload.text, service: FileRules.service))
      } catch { throw .invalid("There was an error updating rules:\n\(error.summary)") }
    } then: {
      storageRequest.send { $0.member("message", "Rules updated successfully") }
    }
  }
}
