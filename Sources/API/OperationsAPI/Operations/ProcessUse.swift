import Glibc

/// The process's use of the machine's resources, under the metric names that dashboards know.
struct ProcessUse {
  private var cpuSeconds = 0.0
  private var residentBytes = 0
  private var virtualBytes = 0
  private var startSeconds = 0.0
  private var openDescriptors = 0
  private var descriptorsMax = 0

  /// Reads the values from `/proc`. A value that cannot be read is 0.
  static func now() -> ProcessUse {
    var use = ProcessUse()
    let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
    // The numbers follow the process name, which is in parentheses and may contain any character.
    let numbers = read("/proc/self/stat").split(separator: UInt8(ascii: ")")).last?.split(separator: 0x20) ?? []
    func number(_ place: Int) -> Double {
      numbers.indices.contains(place) ? Double(String(decoding: numbers[place], as: UTF8.self)) ?? 0 : 0
    }
    // The field numbers of proc(5), minus three.
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

  /// Appends the samples.
  func append(to text: inout MetricsText) {
    text.family("process_cpu_seconds_total", .counter, "User and system CPU time used.")
    text.sample([], cpuSeconds)
    text.family("process_resident_memory_bytes", .gauge, "Resident memory, including the used pages of LMDB's maps.")
    text.sample([], residentBytes)
    text.family("process_virtual_memory_bytes", .gauge, "Address space, mostly LMDB's maps.")
    text.sample([], virtualBytes)
    text.family("process_open_fds", .gauge, "Open file descriptors.")
    text.sample([], openDescriptors)
    text.family("process_max_fds", .gauge, "Limit of open file descriptors.")
    text.sample([], descriptorsMax)
    text.family("process_start_time_seconds", .gauge, "Start time of the process, in seconds since 1970.")
    text.sample([], startSeconds)
  }

  /// The time when the machine started, in seconds since 1970. Accurate to a few milliseconds, because the two
  /// clocks are read one after the other.
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
    // Do not count ".", ".." and the directory itself.
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
