/// A subscriber and one of its targets.
struct Subscription {
  /// The identity of a subscription.
  struct ID: Hashable {
    var subscriber: ObjectIdentifier
    var target: Int
  }

  let subscriber: Subscriber
  let target: Int

  var id: ID { ID(subscriber: ObjectIdentifier(subscriber), target: target) }
}
