import Basics
import DocumentModel
import Glibc
import WireFormat

/// Vectors and geo points (pipelines.md, sections 4.11 and 4.12).
extension ExpressionEvaluator {
  /// The mean radius of the earth, in metres.
  private static let earthRadius = 6_371_010.0

  func distance(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    if function == .geoDistance {
      guard case .geoPoint(let a) = arguments[0], case .geoPoint(let b) = arguments[1] else { return .null }
      return .double(Self.metres(a, b))
    }
    guard let a = components(arguments[0]) else { return exhausted(.memory) }
    if function == .vectorLength { return .integer(Int64(a.count)) }
    guard let b = components(arguments[1]) else { return exhausted(.memory) }
    guard a.count == b.count else { return fail(function, .differentDimensions) }
    guard charge(2 * a.count) else { return exhausted(.work) }
    var (sum, left, right) = (0.0, 0.0, 0.0)
    for index in a.indices {
      let (x, y) = (a[index], b[index])
      switch function {
      case .euclideanDistance: sum += (x - y) * (x - y)
      case .manhattanDistance: sum += (x - y).magnitude
      default:
        sum += x * y
        left += x * x
        right += y * y
      }
    }
    switch function {
    case .euclideanDistance: return .double(sum.squareRoot())
    case .cosineDistance:
      guard left > 0, right > 0 else { return fail(function, .zeroVector) }
      return .double(1 - sum / (left.squareRoot() * right.squareRoot()))
    default: return .double(sum)
    }
  }

  /// Returns the components of a vector, or `nil` if the row has used up its memory or the vector is damaged.
  func components(_ vector: ExpressionValue) -> UnsafeBufferPointer<Double>? {
    guard case .vector(let bytes) = vector else { return nil }
    do throws(WireError) {
      guard let array = try EncodedMap(mapValue: bytes).vectorComponents else { return nil }
      let count = try array.count
      guard charge(8 * count), let copy = arena.take(Double.self, count) else { return nil }
      var items = array.makeIterator()
      var index = 0
      while index < count, let item = try items.next() {
        switch try item.content {
        case .double(let number): (copy + index).initialize(to: number)
        case .integer(let number): (copy + index).initialize(to: Double(number))
        default: (copy + index).initialize(to: .nan)
        }
        index += 1
      }
      return UnsafeBufferPointer(start: copy, count: index)
    } catch {
      return nil
    }
  }

  /// The distance of two points on a sphere, in metres.
  private static func metres(_ a: GeoPoint, _ b: GeoPoint) -> Double {
    let radians = Double.pi / 180
    let latitude = sin((b.latitude - a.latitude) * radians / 2)
    let longitude = sin((b.longitude - a.longitude) * radians / 2)
    let haversine =
      latitude * latitude + cos(a.latitude * radians) * cos(b.latitude * radians) * longitude * longitude
    return 2 * earthRadius * asin(min(1, haversine.squareRoot()))
  }
}
