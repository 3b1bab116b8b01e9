"""Serves a store with the API of Amazon S3 on a free loopback port: moto, which checks signatures.

Prints "S3 URL BUCKET ACCESS_KEY_ID SECRET_ACCESS_KEY", then serves until it is killed.
"""

import json
import signal
import urllib.request

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "hearth-test"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"


def client(service):
    return boto3.client(
        service, endpoint_url=url, region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
iam = client("iam")
iam.create_user(UserName="hearth")
iam.put_user_policy(UserName="hearth", PolicyName="files", PolicyDocument=json.dumps(POLICY))
key = iam.create_access_key(UserName="hearth")["AccessKey"]
# From here on, every request needs a valid signature.
check = urllib.request.Request(
    f"{url}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"}
)
urllib.request.urlopen(check).read()
print("S3", url, BUCKET, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
signal.pause()
