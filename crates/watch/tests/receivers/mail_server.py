"""A mail server that takes letters over TLS from whoever knows the password, and prints each as a line of JSON.

Its arguments: certificate, key, user, password. The first line that it prints is its port.
"""

import json
import logging
import ssl
import sys
import threading
from email import message_from_bytes, policy

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

certificate, key, user, password = sys.argv[1:]
# Clients that it turns away are a part of the test.
logging.disable()


def say(value):
    print(json.dumps(value), flush=True)


def authenticate(server, session, envelope, mechanism, given):
    is_known = (given.login, given.password) == (user.encode(), password.encode())
    return AuthResult(success=is_known, handled=False)


class Handler:
    async def handle_DATA(self, server, session, envelope):
        letter = message_from_bytes(envelope.content, policy=policy.default)
        say(
            {
                "tls": session.ssl is not None,
                "authenticated": session.authenticated,
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "subject": letter["subject"],
                "message_id": letter["message-id"],
                "references": letter["references"],
                "defects": [str(defect) for defect in letter.defects],
                "text": letter.get_content(),
            }
        )
        return "250 taken"


class AnyPort(Controller):
    """Looks whether the server answers at the port that it was given, which is known when it listens."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain(certificate, key)
controller = AnyPort(
    Handler(),
    hostname="127.0.0.1",
    port=0,
    tls_context=tls,
    require_starttls=True,
    auth_required=True,
    authenticator=authenticate,
)
controller.start()
say(controller.port)
threading.Event().wait()
