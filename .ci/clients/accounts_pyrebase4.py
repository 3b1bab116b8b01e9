"""Tests the sign-in of pyrebase4 against Hearth. Requests to Google's hosts are redirected to this server.

usage: accounts_pyrebase4.py HOST:PORT PROJECT
"""

import json
import re
import sys

import requests

HOST, PROJECT = sys.argv[1:3]
send = requests.Session.request


def redirected(self, method, url, **named):
    match = re.match(r"https://(www|identitytoolkit|securetoken)\.googleapis\.com(/.*)", url)
    if match:
        url = f"http://{HOST}/{match[1]}.googleapis.com{match[2]}"
    return send(self, method, url, **named)


requests.Session.request = redirected
requests.delete(f"http://{HOST}/emulator/v1/projects/{PROJECT}/accounts", timeout=20)

import pyrebase

auth = pyrebase.initialize_app({
    "apiKey": "any", "authDomain": f"{PROJECT}.firebaseapp.com", "databaseURL": f"http://{HOST}",
    "storageBucket": f"{PROJECT}.appspot.com"}).auth()
done = 0


def step(name, holds=True):
    global done
    assert holds, name
    done += 1


def failure(function, *arguments):
    try:
        function(*arguments)
    except requests.exceptions.HTTPError as error:
        return json.loads(error.args[1])["error"]["message"]
    return None


user = auth.create_user_with_email_and_password("ann@example.com", "secret-1")
step("create", user["email"] == "ann@example.com")
step("sign in", auth.sign_in_with_email_and_password("ann@example.com", "secret-1")["localId"] == user["localId"])
fresh = auth.refresh(user["refreshToken"])
step("refresh", fresh["userId"] == user["localId"])
info = auth.get_account_info(fresh["idToken"])["users"][0]
step("account info", info["email"] == "ann@example.com" and info["passwordHash"] == "UkVEQUNURUQ=" and "salt" not in info)
profile = auth.update_profile(fresh["idToken"], display_name="Ann")
step("profile", auth.get_account_info(fresh["idToken"])["users"][0]["displayName"] == "Ann")
changed = auth.change_password(fresh["idToken"], "secret-2")
step("change password", failure(auth.sign_in_with_email_and_password, "ann@example.com", "secret-1") == "INVALID_PASSWORD")
step("change e-mail", auth.change_email(changed["idToken"], "ann.b@example.com")["email"] == "ann.b@example.com")
user = auth.sign_in_with_email_and_password("ann.b@example.com", "secret-2")
step("verification mail", auth.send_email_verification(user["idToken"])["email"] == "ann.b@example.com")
step("reset mail", auth.send_password_reset_email("ann.b@example.com")["email"] == "ann.b@example.com")
codes = requests.get(f"http://{HOST}/emulator/v1/projects/{PROJECT}/oobCodes", timeout=20).json()["oobCodes"]
code = [c for c in codes if c["requestType"] == "PASSWORD_RESET"][-1]["oobCode"]
step("reset", auth.verify_password_reset_code(code, "secret-3")["email"] == "ann.b@example.com")
step("sign in again", auth.sign_in_with_email_and_password("ann.b@example.com", "secret-3")["localId"] == user["localId"])
guest = auth.sign_in_anonymous()
step("guest", "email" not in auth.get_account_info(guest["idToken"])["users"][0])
step("weak password", failure(auth.create_user_with_email_and_password, "b@example.com", "123").startswith("WEAK_PASSWORD : "))
step("e-mail address in use", failure(auth.create_user_with_email_and_password, "ann.b@example.com", "secret-1") == "EMAIL_EXISTS")
auth.delete_user_account(guest["idToken"])
step("deleted", failure(auth.get_account_info, guest["idToken"]) == "USER_NOT_FOUND")

print(f"{done} passed")
