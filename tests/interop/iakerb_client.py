#!/usr/bin/python3
"""MIT's library logs on with a password and without a KDC of its own (IAKERB): what is accepted, and what is refused.

Usage: iakerb_client.py ACCEPT INITIATOR...              all checks against our acceptor (examples/iakerb.rs of crates/rules/auth)
       iakerb_client.py ACCEPT INITIATOR... -- record FILE     records an exchange
       iakerb_client.py --smb HOST:PORT SHARE USER PASSWORD INITIATOR...     logs on to a server over SMB 2.1, and signs

INITIATOR is the command that runs gss_initiator.py; it may be the version of another system.
"""
import hashlib
import hmac
import socket
import struct
import subprocess
import sys
import time

REALM, PASSWORD = 'FILES.TEST', 'correct horse'
failed = 0


def check(what, value, wanted):
    """Counts one check, and prints it."""
    global failed
    if value == wanted:
        print('ok', what)
    else:
        failed += 1
        print(f'FAIL {what}: {str(value)[:300]}, not {str(wanted)[:300]}')


class Lines:
    """A program that is asked a line and answers a line."""

    def __init__(self, command):
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.stdin.close()
        self.program.stdout.close()
        self.program.wait(timeout=60)

    def say(self, line):
        self.program.stdin.write(line + '\n')
        self.program.stdin.flush()

    def hear(self):
        return self.program.stdout.readline().strip()

    def ask(self, line):
        self.say(line)
        return self.hear()


def element(tag, *content):
    content = b''.join(content)
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    digits = length.to_bytes((length.bit_length() + 7) // 8, 'big')
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def elements(data):
    """Tags and contents, one after another."""
    while data:
        length, at = data[1], 2
        if length & 0x80:
            at += length & 0x7f
            length = int.from_bytes(data[2:at], 'big')
        yield data[0], data[at:at + length]
        data = data[at + length:]


class Initiator(Lines):
    """MIT's library; inside SPNEGO if that is wanted. RFC 4178 4.2."""

    def __init__(self, command, mechanism, user, password, realm=REALM):
        super().__init__(command + [f'{user}@{realm}', password, 'cifs@files.test'])
        self.is_wrapped, self.is_first = mechanism == 'spnego', True

    def next(self):
        """The next token, or the last words of the library."""
        said = self.hear()
        if said.startswith(('complete', 'failed')):
            return said, None
        token = bytes.fromhex(said)
        if self.is_wrapped:
            token = element(0xa2, element(4, token))
            if self.is_first:
                mechanisms = element(0xa0, element(0x30, IAKERB))
                token = element(0x60, SPNEGO, element(0xa0, element(0x30, mechanisms, token)))
            else:
                token = element(0xa1, element(0x30, token))
        self.is_first = False
        return None, token

    def give(self, token):
        if self.is_wrapped:
            fields = dict(elements(next(elements(next(elements(token))[1]))[1]))
            token = next(elements(fields[0xa2]))[1]
        self.say(token.hex())


SPNEGO, IAKERB = bytes.fromhex('06062b0601050502'), bytes.fromhex('06062b0601050205')
NTLM = bytes.fromhex('2b06010401823702020a')


def exchange(server, client, change=lambda number, token: token):
    """Carries tokens to and fro; what both say at the end, and how many tokens the client sent."""
    number = 0
    while True:
        said, token = client.next()
        if said:
            return said, '', number
        verdict = server.ask('token ' + change(number, token).hex())
        number += 1
        word, _, rest = verdict.partition(' ')
        if word == 'continue':
            client.give(change(-number, bytes.fromhex(rest)))
        elif word == 'done':
            name, key, reply = rest.split(' ')
            if reply != '-':
                client.give(bytes.fromhex(reply))
            return client.next()[0], f'{name} {key}', number
        else:
            return 'refused', verdict, number


def logged_on(accept, command, mechanism, user, password, realm=REALM, skew=0, change=lambda number, token: token):
    with Lines([accept]) as server, Initiator(command, mechanism, user, password, realm) as client:
        server.ask(f'now {int(time.time()) + skew}')
        return exchange(server, client, change)


def everything(accept, command):
    for mechanism in ('iakerb', 'spnego'):
        said, who, tokens = logged_on(accept, command, mechanism, 'anna', PASSWORD)
        name, _, key = who.partition(' ')
        check(f'{mechanism}: anna logs on', (said.split(' ')[0], name), ('complete', 'anna'))
        check(f'{mechanism}: both have the same key', said.split(' ')[-1], key)
        check(f'{mechanism}: AS twice, TGS, AP', tokens, 4)
        for what, user, password, why in (
                ('a wrong password', 'anna', 'wrong horse', 'fail wrong password'),
                ('an unknown user', 'nobody', PASSWORD, 'fail there is no such account'),
                ('a disabled account', 'gone', PASSWORD, 'fail the account is disabled')):
            said, verdict, tokens = logged_on(accept, command, mechanism, user, password)
            check(f'{mechanism}: {what} is refused', (said, verdict), ('refused', why))
            check(f'{mechanism}: {what} is asked for a proof first', tokens, 2)
        said, *_ = logged_on(accept, command, mechanism, 'anna', PASSWORD, realm='OTHER.TEST')
        check(f'{mechanism}: another realm is none', said.split(' ')[0], 'failed')
        said, *_ = logged_on(accept, command, mechanism, 'anna', PASSWORD, skew=3000)
        check(f'{mechanism}: a client whose clock is wrong uses that of the KDC', said.split(' ')[0], 'complete')

    def altered(number, token):
        """The realm in the header of the first reply: nothing but the checksum over all tokens covers it."""
        return token.replace(REALM.encode(), b'FILES.TESU', 1) if number == -1 else token
    said, verdict, _ = logged_on(accept, command, 'iakerb', 'anna', PASSWORD, change=altered)
    check('a realm that is altered on the way is found', (said, 'was changed on the way' in verdict), ('refused', True))


def record(accept, command, path):
    """Records an exchange that both agreed on."""
    lines = []
    with Lines([accept]) as server, Initiator(command, 'iakerb', 'anna', PASSWORD) as client:
        now = int(time.time())
        server.ask(f'now {now}')
        lines.append(f'now {now}')

        def keep(number, token):
            lines.append(f'{"<" if number < 0 else ">"} {token.hex()}')
            return token
        said, who, _ = exchange(server, client, keep)
        check('recorded', said.split(' ')[0], 'complete')
        lines.append(f'done {who}')
    with open(path, 'w', encoding='ascii') as file:
        file.write('\n'.join(lines) + '\n')


class Smb:
    """SMB 2.1, as much as a logon needs. [MS-SMB2] 2.2."""

    def __init__(self, address):
        host, _, port = address.rpartition(':')
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.message_id, self.session, self.key = 0, 0, None

    def call(self, command, body):
        flags = 8 if self.key else 0
        header = struct.pack('<4sHHIHHIIQIIQ16s', b'\xfeSMB', 64, 1, 0, command, 1, flags, 0, self.message_id, 0xfeff, 0, self.session, b'')
        message = bytearray(header + body)
        if self.key:
            message[48:64] = hmac.new(self.key, bytes(message), hashlib.sha256).digest()[:16]
        self.message_id += 1
        self.socket.sendall(struct.pack('>I', len(message)) + message)
        reply = self.receive(struct.unpack('>I', self.receive(4))[0])
        status, self.session = struct.unpack_from('<I', reply, 8)[0], struct.unpack_from('<Q', reply, 40)[0]
        if self.key and status == 0:
            unsigned = reply[:48] + bytes(16) + reply[64:]
            check('the reply is signed with the key of the ticket', hmac.new(self.key, unsigned, hashlib.sha256).digest()[:16], reply[48:64])
        return status, reply

    def receive(self, length):
        data = b''
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise SystemExit('the server has closed the connection')
            data += more
        return data

    def negotiate(self):
        body = struct.pack('<HHHHI16sQH', 36, 1, 1, 0, 0, bytes(range(16)), 0, 0x210)
        status, reply = self.call(0, body)
        offset, length = struct.unpack_from('<HH', reply, 64 + 56)
        return status, reply[offset:offset + length]

    def session_setup(self, token):
        body = struct.pack('<HBBIIHHQ', 25, 0, 1, 0, 0, 64 + 24, len(token), 0) + token
        status, reply = self.call(1, body)
        if status not in (0, 0xc0000016):
            return status, b''
        offset, length = struct.unpack_from('<HH', reply, 64 + 4)
        return status, reply[offset:offset + length]

    def tree_connect(self, share):
        path = f'\\\\files.test\\{share}'.encode('utf-16-le')
        return self.call(3, struct.pack('<HHHH', 9, 0, 64 + 8, len(path)) + path)[0]


def smb(address, share, user, password, command):
    """Logs on; the status at the end."""
    connection = Smb(address)
    _, offered = connection.negotiate()
    print('offered:', 'IAKERB' if IAKERB in offered else '-', 'NTLM' if NTLM in offered else '-')
    name, _, realm = user.partition('@')
    with Initiator(command, 'spnego', name, password, realm) as client:
        while True:
            said, token = client.next()
            if said:
                raise SystemExit(said)
            status, reply = connection.session_setup(token)
            if status not in (0, 0xc0000016):
                print(f'status 0x{status:08x}')
                return
            client.give(reply)
            if status == 0:
                break
        key = bytes.fromhex(client.next()[0].split(' ')[1])
    connection.key = key[:16]
    print(f'status 0x{connection.tree_connect(share):08x}')


match sys.argv[1:]:
    case ['--smb', address, share, user, password, *command]:
        smb(address, share, user, password, command)
    case [accept, *rest] if '--' in rest:
        record(accept, rest[:rest.index('--')], rest[-1])
    case [accept, *command]:
        everything(accept, command)
sys.exit(failed != 0)
