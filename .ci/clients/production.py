"""Tests Google's clients against a server in production mode, with a key of `hearth keys create`.

The clients are unmodified, except that firebase-admin's auth has constant URLs, which are replaced. Prints one line for
each check, then the number of passed checks.

usage: production.py URL KEY_FILE HEARTH DATA_DIR [CERTIFICATE]

With an https URL and its certificate, runs only the checks that need TLS, because Google's gRPC library sends
credentials only over TLS. With an http URL, runs the other checks.
"""
import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

plain, key_file, hearth, data = sys.argv[1:5]
is_tls = plain.startswith("https://")
if is_tls:
    os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = os.environ["REQUESTS_CA_BUNDLE"] = sys.argv[5]
os.environ.pop("FIRESTORE_EMULATOR_HOST", None)
os.environ.pop("FIREBASE_AUTH_EMULATOR_HOST", None)

import firebase_admin
import google.oauth2.credentials
import jwt
from cryptography import x509
from firebase_admin import _auth_providers, _token_gen, _user_mgt, auth, credentials
from google.api_core import exceptions
from google.auth.transport import requests as transport
from google.cloud import firestore
from google.oauth2 import service_account

with open(key_file, encoding="utf-8") as file:
    info = json.load(file)
# The port changes with each start of the server.
info["token_uri"] = f"{plain}/token"
project = info["project_id"]
trusted = ssl.create_default_context(cafile=sys.argv[5]) if is_tls else None
passed = failed = 0


def check(name, body):
    """Runs one check. Any exception is a failure."""
    global passed, failed
    try:
        body()
    except Exception as error:  # pylint: disable=broad-except
        failed += 1
        print(f"FAILED {name}: {type(error).__name__}: {str(error)[:300]}")
    else:
        passed += 1
        print(f"ok {name}")


def raises(kind, body):
    try:
        body()
    except kind:
        return
    raise AssertionError(f"not rejected with {kind}")


def get(path, token=None):
    """Returns the status and the body of a response."""
    request = urllib.request.Request(plain + path)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def command(*words):
    run = subprocess.run([hearth, *words, "--data", data, "--project", project], capture_output=True, text=True, check=True)
    return run.stdout.strip()


document = f"/v1/projects/{project}/databases/(default)/documents/users/ann"
id_token = None if is_tls else command("token", "ann", "--claims", '{"role": "editor", "email": "ann@example.com"}')


# google-auth requests an access token.
def access_token():
    own = service_account.Credentials.from_service_account_info(
        info, scopes=["https://www.googleapis.com/auth/cloud-platform"])
    own.refresh(transport.Request())
    assert own.valid and get(document, own.token)[0] in (200, 404)


# google-cloud-firestore over TLS: with a JWT that the library signs, then with an access token.
def client(info, signs_itself):
    own = service_account.Credentials.from_service_account_info(info)
    return firestore.Client(
        project=project, client_options={"api_endpoint": plain.removeprefix("https://")},
        credentials=own.with_always_use_jwt_access(signs_itself))


def documents(signs_itself):
    database = client(info, signs_itself)
    place = database.collection("users").document("ann")
    place.set({"name": "Ann"}, timeout=10)
    assert place.get(timeout=10).to_dict() == {"name": "Ann"}
    assert [d.id for d in database.collection("users").where(filter=firestore.FieldFilter("name", "==", "Ann")).stream(timeout=10)] == ["ann"]


def user():
    """Uses a user's ID token as the library's credential, so that the rules apply."""
    with urllib.request.urlopen(f"{plain}/v1/accounts:signUp?key=any", b"{}", timeout=10, context=trusted) as reply:
        guest = json.load(reply)
    database = firestore.Client(
        project=project, client_options={"api_endpoint": plain.removeprefix("https://")},
        credentials=google.oauth2.credentials.Credentials(guest["idToken"]))
    assert not database.document(f"users/{guest['localId']}").get(timeout=10).exists
    raises(exceptions.PermissionDenied, lambda: database.document("users/eve").get(timeout=10))
    raises(exceptions.PermissionDenied, lambda: database.document(f"users/{guest['localId']}").set({}, timeout=10))


def stranger():
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    for signs_itself in (True, False):
        # The server rejects the JWT, either in the request or in the token exchange.
        database = client({**info, "private_key": pem}, signs_itself)
        raises((exceptions.Unauthenticated, exceptions.ServiceUnavailable),
               lambda database=database: database.document("users/ann").get(timeout=10, retry=None))


# Other libraries verify tokens with the published keys.
def key_set():
    status, body = get("/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
    keys = {key["kid"]: jwt.PyJWK(key).key for key in json.loads(body)["keys"]}
    header = jwt.get_unverified_header(id_token)
    claims = jwt.decode(id_token, keys[header["kid"]], algorithms=["RS256"], audience=project,
                        issuer=f"https://securetoken.google.com/{project}")
    assert status == 200 and claims["sub"] == "ann" and claims["role"] == "editor"
    forged = id_token[:-8] + "AAAAAAAA"
    raises(jwt.InvalidSignatureError, lambda: jwt.decode(forged, keys[header["kid"]], algorithms=["RS256"], audience=project))


def certificates():
    _, body = get("/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com")
    for kid, pem in json.loads(body).items():
        found = x509.load_pem_x509_certificate(pem.encode())
        found.verify_directly_issued_by(found)
        subprocess.run(["openssl", "x509", "-noout", "-checkend", "86400"], input=pem, text=True, check=True, capture_output=True)
        assert kid == jwt.get_unverified_header(id_token)["kid"]


# firebase-admin.
def admin():
    toolkit = f"{plain}/identitytoolkit.googleapis.com"
    _token_gen.TokenGenerator.ID_TOOLKIT_URL = _user_mgt.UserManager.ID_TOOLKIT_URL = f"{toolkit}/v1"
    _auth_providers.ProviderConfigClient.PROVIDER_CONFIG_URL = f"{toolkit}/v2"
    _token_gen.ID_TOKEN_CERT_URI = f"{plain}/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
    _token_gen.COOKIE_CERT_URI = f"{plain}/identitytoolkit/v3/relyingparty/publicKeys"
    return firebase_admin.initialize_app(credentials.Certificate(info), {"projectId": project})


app = admin()


def verify():
    claims = auth.verify_id_token(id_token, app)
    assert claims["uid"] == "ann" and claims["email"] == "ann@example.com", claims
    raises(auth.InvalidIdTokenError, lambda: auth.verify_id_token(id_token[:-8] + "AAAAAAAA", app))
    unsigned = command("token", "ann", "--unsigned")
    raises(auth.InvalidIdTokenError, lambda: auth.verify_id_token(unsigned, app))


def custom_token():
    # A custom token is only for signing in; it does not authorize requests.
    token = auth.create_custom_token("eve", {"admin": True}, app).decode()
    assert get(document, token)[0] == 401


# Tokens that a server in production mode rejects.
def refused():
    head, body, signature = id_token.split(".")
    payload = json.loads(base64.urlsafe_b64decode(body + "=="))
    payload["sub"] = payload["user_id"] = "eve"
    forged = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    for token in ["owner", "ya29.x", f"{head}.{forged}.{signature}", f"{none}.{body}.", f"{none}.{forged}.", "x", id_token + "A"]:
        status, text = get(document, token)
        assert status == 401 and json.loads(text)["error"]["status"] == "UNAUTHENTICATED", (token[:20], text)
    assert get(document)[0] == 403 and get(document, id_token)[0] == 404


def revoked():
    command("keys", "create", "brief", "--url", plain, "--output", f"{data}/brief.json")
    own = service_account.Credentials.from_service_account_file(f"{data}/brief.json", scopes=["s"])
    own.refresh(transport.Request())
    assert get(document, own.token)[0] == 404 and "brief" in command("keys", "list")
    command("keys", "revoke", "brief")
    assert get(document, own.token)[0] == 401 and "brief" not in command("keys", "list")


if is_tls:
    check("google-cloud-firestore with JWTs it signs itself", lambda: documents(True))
    check("google-cloud-firestore with an access token", lambda: documents(False))
    check("google-cloud-firestore with a user's ID token", user)
    check("google-cloud-firestore with another key is rejected", stranger)
else:
    check("google-auth exchanges an assertion for an access token", access_token)
    check("PyJWT verifies an ID token with the key set", key_set)
    check("cryptography and openssl read the certificates", certificates)
    check("firebase-admin verifies ID tokens", verify)
    check("a custom token does not authorize requests", custom_token)
    check("unsigned, modified and foreign tokens are rejected", refused)
    check("revoking a key invalidates its access tokens", revoked)
print(f"production: {passed} of {passed + failed}")
sys.stdout.flush()
os._exit(0)
