"""An open screen of an app: a listener of google-cloud-firestore."""

import threading
import time


class Screen:
    """The ids that a listener shows, in the order of its query, and whether it is active."""

    def __init__(self, query):
        self.ids, self._changed = None, threading.Condition()
        self._watch = query.on_snapshot(self._show)

    def _show(self, documents, changes, time):
        with self._changed:
            self.ids = [document.id for document in documents]
            self._changed.notify_all()

    def shows(self, holds):
        """Waits until the ids satisfy `holds`."""
        assert self._waits(lambda: self.ids is not None and holds(self.ids)), self.ids

    def opens(self, holds):
        """Waits until the ids satisfy `holds` or the server ends the listener. Returns whether they do."""
        def shows():
            return self.ids is not None and holds(self.ids)

        self._waits(lambda: shows() or not self._watch.is_active)
        return shows()

    def _waits(self, condition):
        """Polls a condition for at most half a minute: the library does not report that its thread ended."""
        deadline = time.monotonic() + 30
        with self._changed:
            while not condition() and time.monotonic() < deadline:
                self._changed.wait(0.05)
            return condition()

    def ends(self):
        """Waits until the server ends the listener, which ends the library's thread."""
        self._watch._consumer._thread.join(30)  # pylint: disable=protected-access
        assert not self._watch.is_active

    def close(self):
        self._watch.unsubscribe()
