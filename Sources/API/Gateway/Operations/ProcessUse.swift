import Glibc

/// What the process uses of the machine, under the names that dashboards know.
struct ProcessUse {
  private var cpuSeconds = 0.0
  private var residentBytes = 0
  private var virtualBytes = 0
  private var startSeconds = 0.0
  private var openDescriptors = 0
  private var descriptorsMax = 0

  /// Reads it from `/proc`; what cannot be read is 0.
  static func now() -> ProcessUse {
    var use = ProcessUse()
    let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
    // Behind the name, which is in parentheses and may hold anything, come numbers.
    let numbers = read("/proc/self/stat").split(separator: UInt8(ascii: ")")).last?.split(separator: 0x20) ?? []
    func number(_ place: Int) -> Double {
      numbers.indices.contains(place) ? Double(String(decoding: numbers[place], as: UTF8.self)) ?? 0 : 0
    }
    // Numbered as in proc(5), less three.
    use.cpuSeconds = (number(11) + number(12)) / ticks
    use.virtualBytes = Int(number(20))
    use.residentBytes = Int(number(21)) * Int(sysconf(Int32(_SC_PAGESIZE)))
    use.startSeconds = bootSeconds() + number(19) / ticks
    use.openDescriptors = descriptors()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      use.descriptorsMax = Int(clamping: limit.rlim_cur)
    }
    return use
  }

  /// Adds the samples.
  func append(to text: inout MetricsText) {
    text.family("process_cpu_seconds_total", .counter, "Processor time used, of the user and the system.")
    text.sample([], cpuSeconds)
    text.family("process_resident_memory_bytes", .gauge, "Memory that is resident; of LMDB's maps what is touched.")
    text.sample([], residentBytes)
    text.family("process_virtual_memory_bytes", .gauge, "Address space, most of which is LMDB's maps.")
    text.sample([], virtualBytes)
    text.family("process_open_fds", .gauge, "Descriptors that are open.")
    text.sample([], openDescriptors)
    text.family("process_max_fds", .gauge, "Descriptors that may be open.")
    text.sample([], descriptorsMax)
    text.family("process_start_time_seconds", .gauge, "When the process began, in seconds since 1970.")
    text.sample([], startSeconds)
  }

  /// When the machine began, in seconds since 1970; to a few milliseconds, which clocks that are set cost.
  private static func bootSeconds() -> Double {
    func seconds(_ clock: clockid_t) -> Double {
      var time = timespec()
      clock_gettime(clock, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    return seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME)
  }

  private static func descriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Beside ".", ".." and the directory's own.
    return max(0, count - 3)
  }

  private static func read(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes[..<count])
  }
}
