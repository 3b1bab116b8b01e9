import Accounts
import DatabaseService
import DocumentModel
package import GatewayCore
import Transport
import WireFormat

/// Switches the recording of decisions of a production server on and off.
///
/// - `GET /hearth/v1/recording` → `{"isOn": …, "secondsLeft": …, "requestsLeft": …}`
/// - `POST /hearth/v1/recording` begins a recording: `{"seconds": …, "requests": …}`, both optional.
/// - `DELETE /hearth/v1/recording` ends it.
///
/// The requests themselves are read by ``DecisionLogAPI``.
package final class RecordingAPI: API {
  package let authenticator: Authenticator
  private let recording: DecisionRecording

  /// Creates the API.
  package init(_ recording: DecisionRecording, _ authenticator: Authenticator) {
    self.recording = recording
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<RecordingAPI>] {
    let path = "/hearth/v1/recording"
    return [
      Route(.get, [path], kind: .control, access: .administrator) { api, _, call in api.send(call) },
      Route(.post, [path], kind: .control, access: .administrator) { try $0.start($1, $2) },
      Route(.delete, [path], kind: .control, access: .administrator) { api, _, call in
        api.recording.stop()
        api.send(call)
      },
    ]
  }

  private func start(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    guard let body = MapValue(json: request.body),
      let seconds = Self.count("seconds", in: body, max: DecisionLogLimits.recordedSecondsMax),
      let requests = Self.count("requests", in: body, max: DecisionLogLimits.requestsMax)
    else {
      throw Status(
        .invalidArgument,
        "The body must be {\"seconds\": …, \"requests\": …}, at most \(DecisionLogLimits.recordedSecondsMax) seconds and "
          + "\(DecisionLogLimits.requestsMax) requests.")
    }
    recording.start(seconds: seconds, requests: requests)
    send(call)
  }

  /// Returns a member from 1 to `max`, or `max` if the body does not have it, or `nil` if it is something else.
  private static func count(_ name: String, in body: MapValue, max: Int) -> Int? {
    guard let value = body[name] else { return max }
    guard case .integer(let number) = value, number >= 1, number <= Int64(max) else { return nil }
    return Int(number)
  }

  private func send(_ call: RoutedCall) {
    let state = recording.state
    let map = MapValue([
      ("isOn", .boolean(state.isOn)), ("secondsLeft", .integer(Int64(state.secondsLeft))),
      ("requestsLeft", .integer(Int64(state.requestsLeft))),
    ])
    call.responder.sendJSON(map.json, cacheControl: "no-store")
  }
}
