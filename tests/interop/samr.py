#!/usr/bin/python3
"""Has Samba's decoder read every class of information that the pipe samr has.

samr.py ADDRESS CONFIGURATION USER PASSWORD: prints what it has read, a line each.
"""
import sys

from samba import credentials, param
from samba.dcerpc import lsa, samr, security

address, configuration, user, password = sys.argv[1:]
READ = 1  # the server gives no other access, and ignores what is asked for

settings = param.LoadParm()
settings.load(configuration)
who = credentials.Credentials()
who.guess(settings)
who.set_username(user)
who.set_password(password)
who.set_kerberos_state(credentials.DONT_USE_KERBEROS)
pipe = samr.samr(f"ncacn_np:{address}[]", settings, who)


def text(value):
    string = lsa.String()
    string.string = value
    return string


server = pipe.Connect2(None, READ)
domain = pipe.OpenDomain(server, READ, pipe.LookupDomain(server, text("ANABRANCH")))
builtin = pipe.OpenDomain(server, READ, security.dom_sid("S-1-5-32"))
for level in 1, 2, 3, 4, 5, 6, 7, 8, 9, 12:
    pipe.QueryDomainInfo(domain, level)
    print(f"domain {level}")
(user_rid,) = pipe.LookupNames(domain, [text(user)])[0].ids
account = pipe.OpenUser(domain, READ, user_rid)
for level in 1, 6, 7, 8, 9, 13, 16, 21:
    found = pipe.QueryUserInfo(account, level)
    print(f"user {level}")
print("all:", found.account_name.string, found.rid == user_rid, found.primary_gid, hex(found.acct_flags),
      found.logon_hours.units_per_week, set(found.logon_hours.bits))
group = pipe.OpenGroup(domain, READ, 513)
for level in 1, 2, 3, 4, 5:
    pipe.QueryGroupInfo(group, level)
    print(f"group {level}")
alias = pipe.OpenAlias(builtin, READ, 545)
for level in 1, 2, 3:
    found = pipe.QueryAliasInfo(alias, level)
    print(f"alias {level}")
_, _, shown = pipe.QueryDisplayInfo(domain, 1, 0, 10, 10000)
print("shown:", *(entry.account_name.string for entry in shown.entries))
level, information, _ = pipe.Connect5(None, READ, 1, samr.ConnectInfo1())
print("revision:", level, information.client_version)
