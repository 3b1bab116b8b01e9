"""An open screen of an app: a listener of google-cloud-firestore."""

import threading


class Screen:
    """The ids that a listener shows, in the order of its query, and whether it goes on."""

    def __init__(self, query):
        self.ids, self._changed = None, threading.Condition()
        self._watch = query.on_snapshot(self._show)

    def _show(self, documents, changes, time):
        with self._changed:
            self.ids = [document.id for document in documents]
            self._changed.notify_all()

    def shows(self, holds):
        """Waits until `holds` is true of the ids."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ids is not None and holds(self.ids), timeout=10), self.ids

    def ends(self):
        """Waits until the server has refused to go on: that ends the library's thread."""
        self._watch._consumer._thread.join(10)  # pylint: disable=protected-access
        assert not self._watch.is_active

    def close(self):
        self._watch.unsubscribe()
