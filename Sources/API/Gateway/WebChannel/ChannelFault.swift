/// What is wrong with a request to a channel. It is answered with HTTP status 400, and the client gives the channel up.
enum ChannelFault: Error, Equatable, CustomStringConvertible {
  /// No channel of that id is here, or no longer. The client opens a new one.
  case unknownSession
  /// The query or the form is not what clients send.
  case malformed(StaticString)

  // Clients look for these words, and not at the very beginning.
  var description: String {
    switch self {
    case .unknownSession: "Error: Unknown SID.\n"
    case .malformed(let reason): "Error: \(reason).\n"
    }
  }

  static func == (a: ChannelFault, b: ChannelFault) -> Bool { a.description.utf8.elementsEqual(b.description.utf8) }
}
