"""An app on a phone: pyrebase4 signs in and transfers files. Its requests go to this server instead of Google's."""

import io
import os
import re
import tempfile

import pyrebase
import requests
from scenario import HOST, PROJECT

_send = requests.Session.request


def _redirected(session, method, url, **named):
    match = re.match(r"https://(www|identitytoolkit|securetoken|firebasestorage)\.googleapis\.com(/.*)", url)
    if match:
        prefix = "" if match[1] == "firebasestorage" else f"/{match[1]}.googleapis.com"
        url = f"http://{HOST}{prefix}{match[2]}"
    return _send(session, method, url, **named)


requests.Session.request = _redirected


class Phone:
    """pyrebase4 with uploads that state a content type."""

    def __init__(self):
        self._app = pyrebase.initialize_app({
            "apiKey": "any", "authDomain": f"{PROJECT}.firebaseapp.com", "databaseURL": f"http://{HOST}",
            "storageBucket": f"{PROJECT}.appspot.com"})
        self.auth = self._app.auth()

    def link(self, id_token, email, password):
        """Turns a guest into a member. Returns the response to the sign-in."""
        linked = self.auth.change_email(id_token, email)
        return self.auth.change_password(linked["idToken"], password)

    def upload(self, path, content, kind, id_token):
        storage = self._app.storage()
        storage.requests.headers["Content-Type"] = kind
        try:
            return storage.child(path).put(io.BytesIO(content), id_token)
        finally:
            del storage.requests.headers["Content-Type"]

    def refused(self, path, content, kind, id_token):
        """Whether the rules deny an upload."""
        try:
            self.upload(path, content, kind, id_token)
        except requests.exceptions.HTTPError as error:
            return error.args[0].response.status_code == 403
        return False

    def download(self, path, id_token=None):
        """The content of a file, or `None` if it cannot be downloaded."""
        with tempfile.TemporaryDirectory() as folder:
            self._app.storage().child(path).download(path, f"{folder}/file", id_token)
            if not os.path.exists(f"{folder}/file"):
                return None
            with open(f"{folder}/file", "rb") as file:
                return file.read()

    def delete(self, path, id_token):
        self._app.storage().delete(path, id_token)

    def url(self, path):
        """The URL of a file, for other programs."""
        return self._app.storage().child(path).get_url(None).replace("https://firebasestorage.googleapis.com", f"http://{HOST}")
