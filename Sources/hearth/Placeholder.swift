import HearthServer
import Glibc
@main struct Main {
  static func main() throws {
    var configuration = HearthConfiguration(storage: CommandLine.arguments.count > 2 ? .directory(CommandLine.arguments[2]) : .inMemory)
    configuration.mode = .emulator
    configuration.port = Int(CommandLine.arguments[1]) ?? 0
    let server = try HearthServer(configuration)
    print("hearth: listening on \(try server.start())")
    fflush(nil)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    var signal: Int32 = 0
    sigprocmask(SIG_BLOCK, &set, nil)
    sigwait(&set, &signal)
    server.stop()
  }
}
