"""firebase-admin with the key of `hearth keys create`, its constant addresses replaced with this server's."""

import os

import firebase_admin
from firebase_admin import _token_gen, _user_mgt, auth, credentials
from scenario import HOST, PROJECT

_toolkit = f"http://{HOST}/identitytoolkit.googleapis.com/v1"
_token_gen.TokenGenerator.ID_TOOLKIT_URL = _user_mgt.UserManager.ID_TOOLKIT_URL = _toolkit
os.environ["STORAGE_EMULATOR_HOST"] = f"http://{HOST}"

firebase_admin.initialize_app(
    credentials.Certificate(os.environ["HEARTH_KEY"]), {"projectId": PROJECT, "storageBucket": f"{PROJECT}.appspot.com"})


def sign_in(phone, uid):
    """The ID token of a user of the fixture, by a custom token instead of a password."""
    return phone.auth.sign_in_with_custom_token(auth.create_custom_token(uid).decode())["idToken"]
