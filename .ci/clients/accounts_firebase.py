"""Tests the unmodified firebase-admin against Hearth's accounts, in emulator mode.

usage: accounts_firebase.py HOST:PORT PROJECT
"""

import base64
import os
import sys
import time
import urllib.parse

HOST, PROJECT = sys.argv[1:3]
os.environ["FIREBASE_AUTH_EMULATOR_HOST"] = HOST
os.environ["FIRESTORE_EMULATOR_HOST"] = HOST
os.environ["GOOGLE_CLOUD_PROJECT"] = PROJECT

import firebase_admin
import requests
from firebase_admin import auth, credentials, firestore
import google.auth.credentials


class Nobody(credentials.Base):
    def get_credential(self):
        return google.auth.credentials.AnonymousCredentials()


firebase_admin.initialize_app(Nobody(), {"projectId": PROJECT})
TOOLKIT = f"http://{HOST}/identitytoolkit.googleapis.com/v1"
DOCUMENTS = f"http://{HOST}/v1/projects/{PROJECT}/databases/(default)/documents"
done = 0


def step(name, holds=True):
    global done
    assert holds, name
    done += 1


def call(name, **fields):
    answer = requests.post(f"{TOOLKIT}/accounts:{name}?key=any", json=fields, timeout=20)
    return answer.status_code, answer.json()


def fails(error, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except error:
        return True
    return False


requests.delete(f"http://{HOST}/emulator/v1/projects/{PROJECT}/accounts", timeout=20)

# Users
user = auth.create_user(uid="ann", email="Ann@Example.com", password="secret-1", phone_number="+16505550100", display_name="Ann")
step("create_user", user.uid == "ann" and user.email == "ann@example.com" and user.phone_number == "+16505550100")
step("get_user_by_email", auth.get_user_by_email("ann@example.com").uid == "ann")
step("get_user_by_phone_number", auth.get_user_by_phone_number("+16505550100").uid == "ann")
user = auth.update_user("ann", display_name="Ann B.", photo_url="https://example.com/a.png", email_verified=True)
step("update_user", user.display_name == "Ann B." and user.email_verified)
step("update_user removes", auth.update_user("ann", phone_number=auth.DELETE_ATTRIBUTE).phone_number is None)
auth.set_custom_user_claims("ann", {"admin": True, "level": 3})
step("set_custom_user_claims", auth.get_user("ann").custom_claims == {"admin": True, "level": 3})
step("providers", [p.provider_id for p in auth.get_user("ann").provider_data] == ["password"])

# Tokens
token = auth.create_custom_token("ann", {"team": "red"}).decode()
status, signed_in = call("signInWithCustomToken", token=token, returnSecureToken=True)
step("signInWithCustomToken", status == 200)
claims = auth.verify_id_token(signed_in["idToken"], check_revoked=True)
step("verify_id_token", claims["uid"] == "ann" and claims["team"] == "red" and claims["admin"] is True)
cookie = auth.create_session_cookie(signed_in["idToken"], expires_in=3600)
claims = auth.verify_session_cookie(cookie, check_revoked=True)
step("session cookie", claims["iss"] == f"https://session.firebase.google.com/{PROJECT}" and claims["uid"] == "ann")

# Revoked, disabled
time.sleep(1.1)
auth.revoke_refresh_tokens("ann")
step("revoked", fails(auth.RevokedIdTokenError, auth.verify_id_token, signed_in["idToken"], check_revoked=True))
refresh = requests.post(
    f"http://{HOST}/securetoken.googleapis.com/v1/token?key=any", timeout=20,
    data={"grant_type": "refresh_token", "refresh_token": signed_in["refreshToken"]})
step("a revoked session ends", refresh.status_code == 400 and refresh.json()["error"]["message"] == "TOKEN_EXPIRED")
auth.update_user("ann", disabled=True)
status, answer = call("signInWithPassword", email="ann@example.com", password="secret-1")
step("a disabled user cannot sign in", status == 400 and answer["error"]["message"] == "USER_DISABLED")
status, fresh = call("signInWithCustomToken", token=token, returnSecureToken=True)
step("a disabled user cannot sign in with a custom token", status == 400 and fresh["error"]["message"] == "USER_DISABLED")
auth.update_user("ann", disabled=False)

# Lists
for number in range(5):
    auth.create_user(uid=f"u{number}")
step("list_users", [u.uid for u in auth.list_users(max_results=2).iterate_all()] == ["ann", "u0", "u1", "u2", "u3", "u4"])
found = auth.get_users([auth.UidIdentifier("u0"), auth.EmailIdentifier("ann@example.com"), auth.UidIdentifier("nobody"),
                        auth.ProviderIdentifier("google.com", "x")])
step("get_users", {u.uid for u in found.users} == {"u0", "ann"} and len(found.not_found) == 2)
result = auth.delete_users(["u0", "u1", "nobody"])
step("delete_users", result.success_count == 3 and result.failure_count == 0)

# Import with Firebase's scrypt, using its published sample
scrypt = auth.UserImportHash.scrypt(
    key=base64.b64decode("jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="),
    salt_separator=base64.b64decode("Bw=="), rounds=8, memory_cost=14)
imported = auth.import_users([auth.ImportUserRecord(
    uid="moved", email="moved@example.com", password_salt=base64.b64decode("42xEC+ixf3L2lw=="),
    password_hash=base64.b64decode(
        "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="),
    provider_data=[auth.UserProvider(uid="g-1", provider_id="google.com", email="moved@gmail.com")])], hash_alg=scrypt)
step("import_users", imported.success_count == 1)
for _ in range(2):
    status, answer = call("signInWithPassword", email="moved@example.com", password="user1password")
    step("sign-in after import", status == 200 and answer["localId"] == "moved")
step("import keeps providers", auth.get_users([auth.ProviderIdentifier("google.com", "g-1")]).users[0].uid == "moved")

# Links
settings = auth.ActionCodeSettings(url="https://app.example/done?x=1", handle_code_in_app=True)
link = urllib.parse.urlparse(auth.generate_password_reset_link("ann@example.com", settings))
query = dict(urllib.parse.parse_qsl(link.query))
step("reset link", query["mode"] == "resetPassword" and query["continueUrl"] == "https://app.example/done?x=1")
status, _ = call("resetPassword", oobCode=query["oobCode"], newPassword="secret-2")
step("reset", status == 200 and call("signInWithPassword", email="ann@example.com", password="secret-2")[0] == 200)
step("verify link", "verifyEmail" in auth.generate_email_verification_link("ann@example.com", settings))
query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(auth.generate_sign_in_with_email_link("new@example.com", settings)).query))
status, answer = call("signInWithEmailLink", email="new@example.com", oobCode=query["oobCode"])
step("sign in by link", status == 200 and answer["isNewUser"])

# Errors
step("unknown user", fails(auth.UserNotFoundError, auth.get_user, "nobody") and fails(auth.UserNotFoundError, auth.delete_user, "nobody"))
step("taken address", fails(auth.EmailAlreadyExistsError, auth.create_user, email="ann@example.com"))
step("taken uid", fails(auth.UidAlreadyExistsError, auth.create_user, uid="ann"))

# A guest becomes a member and has the same data on another device, protected by rules
_, guest = call("signUp", returnSecureToken=True)
uid = guest["localId"]
document = f"{DOCUMENTS}/own/{uid}"


def as_user(method, url, token, **named):
    return requests.request(method, url, headers={"Authorization": f"Bearer {token}"}, timeout=20, **named).status_code


note = {"fields": {"note": {"stringValue": "hello"}}}
step("guest writes", as_user("PATCH", document, guest["idToken"], json=note) == 200)
_, member = call("update", idToken=guest["idToken"], email="guest@example.com", password="secret-3", returnSecureToken=True)
step("same uid", member["localId"] == uid)
_, elsewhere = call("signInWithPassword", email="guest@example.com", password="secret-3", returnSecureToken=True)
step("same data on another device", elsewhere["localId"] == uid and as_user("GET", document, elsewhere["idToken"]) == 200)
step("no access to other users' documents", as_user("GET", f"{DOCUMENTS}/own/ann", elsewhere["idToken"]) == 403)
step("no access to staff documents", as_user("PATCH", f"{DOCUMENTS}/staff/x", elsewhere["idToken"], json=note) == 403)
auth.set_custom_user_claims(uid, {"admin": True})
_, staff = call("signInWithPassword", email="guest@example.com", password="secret-3", returnSecureToken=True)
step("claims reach the rules", as_user("PATCH", f"{DOCUMENTS}/staff/x", staff["idToken"], json=note) == 200)
step("same data for an administrator", firestore.client().document(f"own/{uid}").get().get("note") == "hello")
auth.delete_user(uid)
status, answer = call("lookup", idToken=staff["idToken"])
step("deleted", answer["error"]["message"] == "USER_NOT_FOUND")

print(f"{done} passed")
