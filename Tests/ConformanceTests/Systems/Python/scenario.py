"""Helpers of the scenarios with Google's Python clients: steps, and a Firestore client of an app's user.

Prints `ok STEP` or `FAILED STEP: why` for each step. Exits with 1 if one failed.
"""

import contextlib
import os
import sys

from google.api_core import exceptions
from google.cloud import firestore

HOST = os.environ["FIRESTORE_EMULATOR_HOST"]
PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
failed = 0


@contextlib.contextmanager
def step(bullet):
    """Runs one step of the application. Any exception is a failure of the step."""
    global failed
    try:
        yield
    except Exception as error:  # pylint: disable=broad-except
        failed += 1
        line = error.__traceback__.tb_lineno if error.__traceback__.tb_next is None else error.__traceback__.tb_next.tb_lineno
        print(f"FAILED {bullet}: line {line}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    else:
        print(f"ok {bullet}", flush=True)


def denied(function, *arguments, **named):
    """Expects the rules to deny a call."""
    try:
        result = function(*arguments, **named)
        if hasattr(result, "__next__"):
            result = list(result)
    except exceptions.PermissionDenied:
        return
    raise AssertionError(f"not denied: {result}")


def client(id_token):
    """Firestore as the user of an ID token, which replaces the library's administrator credential."""
    database = firestore.Client(project=PROJECT)
    database._rpc_metadata[-1] = ("authorization", f"Bearer {id_token}")  # pylint: disable=protected-access
    return database


def done():
    """Ends the program without waiting for threads of the library."""
    sys.stdout.flush()
    os._exit(1 if failed else 0)


def administrator():
    """Firestore as the administrator, with the key of `hearth keys create` and its access token."""
    import firebase_admin
    from firebase_admin import credentials
    from google.auth.transport import requests

    key = credentials.Certificate(os.environ["HEARTH_KEY"])
    app = firebase_admin.initialize_app(key, {"projectId": PROJECT})
    access = key.get_credential()
    access.refresh(requests.Request())
    from firebase_admin import firestore as admin_firestore

    database = admin_firestore.client(app)
    database._rpc_metadata[-1] = ("authorization", f"Bearer {access.token}")  # pylint: disable=protected-access
    return database
