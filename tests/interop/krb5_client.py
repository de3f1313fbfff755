#!/usr/bin/python3
"""MIT's library as the client of our acceptor, which answers on its standard input (examples/accept.rs).

Usage: krb5_client.py ACCEPT KEYTAB WRONG-KEYTAB           all checks, in the environment of kdc-lab, with a ticket of alice
       ... pair                                           both sides understand each other, for one service
       ... record FILE [SERVICE [CLIENT]]                 records a session
"""
import os
import subprocess
import sys
import time

import gssapi
from gssapi.raw import RequirementFlag as Flag

ACCEPT, KEYTAB, WRONG_KEYTAB = sys.argv[1:4]
KERBEROS = gssapi.MechType.kerberos
FLAGS = {
    'mutual': Flag.mutual_authentication | Flag.integrity | Flag.confidentiality,
    'one way': Flag.integrity | Flag.confidentiality,
}
failed = 0


def check(what, value, wanted):
    """Counts one check, and prints it."""
    global failed
    if value == wanted:
        print('ok', what)
    else:
        failed += 1
        print(f'FAIL {what}: {str(value)[:200]}, not {str(wanted)[:200]}')


class Server:
    """Our acceptor."""

    def __init__(self, keytab=KEYTAB):
        self.program = subprocess.Popen([ACCEPT, keytab], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask('now', str(int(time.time())))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.stdin.close()
        self.program.wait(timeout=60)

    def ask(self, command, *arguments):
        """Sends a command, and returns the words of the reply."""
        words = [command] + [word.hex() or '-' if isinstance(word, bytes) else word for word in arguments]
        self.program.stdin.write(' '.join(words) + '\n')
        self.program.stdin.flush()
        return self.program.stdout.readline().split()


def client(service, flags):
    """A client, and its first token."""
    name = gssapi.Name(service, gssapi.NameType.hostbased_service)
    context = gssapi.SecurityContext(name=name, flags=flags, mech=KERBEROS, usage='initiate')
    return context, context.step()


def unhex(word):
    return b'' if word == '-' else bytes.fromhex(word)


def pair(service, kind):
    """Both sides understand each other, both ways, in all sizes."""
    what = f'{service}, {kind}'
    with Server() as server:
        context, token = client(service, FLAGS[kind])
        verdict, who, reply = server.ask('token', token)
        check(f'{what}: accepted', (verdict, who), ('ok', 'alice@LAB.TEST'))
        check(f'{what}: an AP-REP', reply != '-', kind == 'mutual')
        if reply != '-':
            context.step(unhex(reply))
        check(f'{what}: complete', context.complete, True)
        for size in (1, 15, 16, 17, 1000, 65536):
            message = bytes(n % 251 for n in range(size))
            context.verify_signature(message, unhex(server.ask('mic', message)[0]))
            mic = context.get_signature(message)
            verdict = server.ask('verify', message, mic)
            check(f'{what}: MIC of {size}', verdict[0], 'ok')
            for how in ('seal', 'sign'):
                opened = context.unwrap(unhex(server.ask(how, message)[0]))
                check(f'{what}: {how} {size}', (opened.message == message, opened.encrypted), (True, how == 'seal'))
                ours = context.wrap(message, how == 'seal').message
                opened = server.ask('unwrap', ours)
                check(f'{what}: unwrap {how} {size}', (opened[0], unhex(opened[2]) == message), ({'seal': 'sealed', 'sign': 'signed'}[how], True))
                changed = bytearray(ours)
                changed[-1] ^= 1
                check(f'{what}: changed {how} {size}', server.ask('unwrap', bytes(changed))[0], 'no')
            changed = message[:-1] + bytes([message[-1] ^ 1])
            check(f'{what}: changed message {size}', server.ask('verify', changed, mic)[0], 'no')


def refused():
    """What is refused, and that MIT's library understands the KRB-ERROR."""
    def told(server, service='cifs@files.lab.test'):
        context, token = client(service, FLAGS['mutual'])
        verdict, label, reply = server.ask('token', token)
        try:
            context.step(unhex(reply))
            return verdict, label, 'complete'
        except gssapi.exceptions.GSSError as error:
            return verdict, label, error.min_code & 0xff

    with Server(WRONG_KEYTAB) as server:
        check('other keys', told(server), ('no', 'no-such-key-version', 44))
    with Server() as server:
        check('a stale key', told(server, 'cifs@old.files.lab.test'), ('no', 'no-such-key-version', 44))
        now = int(time.time())
        server.ask('now', str(now + 400))
        check('our clock is ahead', told(server), ('no', 'clock-skew', 37))
        server.ask('now', str(now + 100_000))
        check('the ticket has ended', told(server), ('no', 'expired', 32))
        server.ask('now', str(now - 100_000))
        check('the ticket has not begun', told(server), ('no', 'not-yet-valid', 33))
        server.ask('now', str(now))
        _, token = client('cifs@files.lab.test', FLAGS['mutual'])
        check('once', server.ask('token', token)[0], 'ok')
        check('twice', server.ask('token', token)[:2], ['no', 'replayed'])
        delegated, token = client('cifs@files.lab.test', FLAGS['mutual'] | Flag.delegate_to_peer)
        check('a forwarded ticket', server.ask('token', token)[0], 'ok')
        check('no user of a domain', server.ask('sids')[0], 'no')


def like_mit(service):
    """Every tenth bit of a token changed: whom we accept, MIT's acceptor accepts as the same client."""
    os.environ['KRB5_KTNAME'] = 'FILE:' + KEYTAB
    # so that the same authenticator may come again in another token
    os.environ['KRB5RCACHENAME'] = 'none:'
    _, token = client(service, FLAGS['mutual'])
    accepted = wrong = 0
    with Server() as server:
        server.ask('token', token)
        for bit in range(0, len(token) * 8, 10):
            changed = bytearray(token)
            changed[bit // 8] ^= 1 << bit % 8
            verdict, label, *_ = server.ask('token', bytes(changed))
            # our cache of replays has seen the authenticator: everything else of the token was right
            if verdict == 'ok' or label == 'replayed':
                accepted += 1
                context = gssapi.SecurityContext(usage='accept')
                try:
                    context.step(bytes(changed))
                    wrong += str(context.initiator_name) != 'alice@LAB.TEST'
                except gssapi.exceptions.GSSError as error:
                    print(f'bit {bit}: MIT refuses what we accept: {error}')
                    wrong += 1
    check(f'{service}: changed tokens that are accepted here, {accepted}, and not by MIT', wrong, 0)



def record(path, service='cifs@files.lab.test', user='alice@LAB.TEST'):
    """Records a session that both sides agreed on."""
    lines = [f'keytab {os.path.basename(path).split("-")[0]}.keytab']
    with Server() as server:
        def ask(command, *arguments):
            reply = server.ask(command, *arguments)
            words = [command] + [word.hex() or '-' if isinstance(word, bytes) else word for word in arguments]
            lines.extend(['> ' + ' '.join(words), '< ' + ' '.join(reply)])
            return reply

        context, token = client(service, FLAGS['mutual'])
        ask('now', str(int(time.time())))
        verdict, who, reply = ask('token', token)
        check(f'recorded {path}', (verdict, who), ('ok', user))
        context.step(unhex(reply))
        ask('sids')
        ask('key')
        message = b'a message of some length'
        context.verify_signature(message, unhex(ask('mic', message)[0]))
        check('MIC', ask('verify', message, context.get_signature(message))[0], 'ok')
        for how in ('seal', 'sign'):
            check(how, context.unwrap(unhex(ask(how, message)[0])).message, message)
            check(f'unwrap {how}', unhex(ask('unwrap', context.wrap(message, how == 'seal').message)[2]), message)
    with open(path, 'w', encoding='ascii') as file:
        file.write('\n'.join(lines) + '\n')


def everything():
    for name in ('cifs@files.lab.test', 'cifs@sha1.files.lab.test', 'cifs@sha384.files.lab.test', 'nfs@files.lab.test'):
        for kind in FLAGS:
            pair(name, kind)
    refused()
    for name in ('cifs@sha1.files.lab.test', 'cifs@sha384.files.lab.test'):
        like_mit(name)


match sys.argv[4:]:
    case []:
        everything()
    case ['pair']:
        pair('cifs@files.lab.test', 'mutual')
    case ['record', *what]:
        record(*what)
sys.exit(failed != 0)
