#!/usr/bin/env python3
"""Objects by boto3, awscli and rclone through the program: what was sent is there, and a refusal reads as one of S3.
s3.py ENDPOINT FOLDER MODE"""
import hashlib
import os
import random
import subprocess
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, folder, mode = sys.argv[1:]
certificate = os.path.join(folder, "cert.pem")
os.environ |= {
    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CA_BUNDLE": certificate,
}
bucket = f"bucket-{mode}"
noise = random.Random(1).randbytes
ATTACK = b"<?php system($_GET['cmd']); ?>"


def client(**settings):
    config = Config(s3={"addressing_style": "path", **settings}, retries={"max_attempts": 1})
    return boto3.client("s3", endpoint_url=endpoint, verify=certificate, config=config)


def check(what, is_well):
    print(f"{mode}: {what}: {'ok' if is_well else 'WRONG'}")
    if not is_well:
        sys.exit(1)


seen = []
s3 = client()
s3.meta.events.register("before-send.s3", lambda request, **_: seen.append(dict(request.headers)))
s3.create_bucket(Bucket=bucket)
# moto loses the body of an object whose type is that of a form, also without a proxy.
objects = {
    "empty": (b"", "application/octet-stream"),
    "text.txt": (b"A note about a holiday in May.\n" * 50, "text/plain"),
    "data.json": (b'{"name": "Ann", "items": [1, 2, 3]}', "application/json"),
    "photo.jpg": (noise(300_000), "image/jpeg"),
    "large.bin": (noise(20 << 20), "application/octet-stream"),
}
for name, (body, media_type) in objects.items():
    s3.put_object(Bucket=bucket, Key=name, Body=body, ContentType=media_type)
    check(f"boto3 put_object {name}", s3.get_object(Bucket=bucket, Key=name)["Body"].read() == body)
    check(f"boto3 stored {name} as it was", "aws-chunked" not in s3.head_object(Bucket=bucket, Key=name).get("ContentEncoding", ""))
framed = [head for head in seen if b"aws-chunked" in str(head.get("Content-Encoding", "")).encode()]
check(f"boto3 sent {len(framed)} bodies in chunks", len(framed) >= len(objects) - 1)

path = os.path.join(folder, "upload.bin")
with open(path, "wb") as file:
    file.write(noise(30 << 20))
digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
s3.upload_file(path, bucket, "parts.bin")
body = s3.get_object(Bucket=bucket, Key="parts.bin")["Body"].read()
check("boto3 upload_file in parts", hashlib.sha256(body).hexdigest() == digest)
try:
    s3.put_object(Bucket=bucket, Key="shell.php", Body=noise(20_000) + ATTACK)
    check("boto3 is refused an attack", False)
except ClientError as error:
    answer = error.response
    is_read = answer["Error"]["Code"] == "AccessDenied" and answer["ResponseMetadata"]["HTTPStatusCode"] == 403
    check(f"boto3 reads the refusal ({answer['ResponseMetadata'].get('RequestId')})", is_read and answer["ResponseMetadata"]["RequestId"])


def run(*words):
    # rclone has a flag of its own for the certificate, and fails where the variable of AWS is set.
    env = {name: value for name, value in os.environ.items() if words[0] != "rclone" or name != "AWS_CA_BUNDLE"}
    return subprocess.run(words, capture_output=True, text=True, env=env)


aws = [sys.executable, "-m", "awscli", "--endpoint-url", endpoint]
sent = run(*aws, "s3", "cp", "--quiet", path, f"s3://{bucket}/aws.bin")
check(f"aws s3 cp {sent.stderr.strip()}", sent.returncode == 0)
got = os.path.join(folder, "got.bin")
run(*aws, "s3", "cp", "--quiet", f"s3://{bucket}/aws.bin", got)
check("aws s3 cp back", hashlib.sha256(open(got, "rb").read()).hexdigest() == digest)

remote = (f":s3,provider=Other,access_key_id=testing,secret_access_key=testing,region=us-east-1,endpoint='{endpoint}':"
          f"{bucket}")
rclone = ["rclone", "--config", "/dev/null", "--ca-cert", certificate, "--retries", "1", "--low-level-retries", "1"]
sent = run(*rclone, "copyto", path, f"{remote}/rclone.bin")
check(f"rclone copyto {sent.stderr.strip()}", sent.returncode == 0)
got = run(*rclone, "hashsum", "SHA-256", "--download", f"{remote}/rclone.bin").stdout.split()[0]
check("rclone reads it back", got == digest)
bad = os.path.join(folder, "shell.php")
with open(bad, "wb") as file:
    file.write(ATTACK)
sent = run(*rclone, "copyto", bad, f"{remote}/shell.php")
# It sends small files by signed URLs, and then shows the status and the id only.
is_read = "status code: 403, request id: 0" in sent.stderr and "unmarshal" not in sent.stderr
check("rclone reads the refusal", sent.returncode != 0 and is_read)
