import base64, hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, HTTPServer

key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
seen = set()  # in your database, in the transaction of the changes that the event causes

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))  # the received bytes, not parsed
        id, timestamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        mac = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(mac).decode()
        signed = any(hmac.compare_digest(expected, given) for given in self.headers["webhook-signature"].split())
        good = signed and abs(time.time() - int(timestamp)) < 300
        if good and id not in seen:
            seen.add(id)
            print(json.loads(body)["type"], id, flush=True)
        self.send_response(204 if good else 401)
        self.end_headers()

HTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Receiver).serve_forever()
