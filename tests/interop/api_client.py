"""Every call of the API, by a client that openapi-python-client has made of its description.

    api_client.py URL TOKEN DIRECTORY    the control address, a token with the scope all, a directory; a client works in the share data

Each answer must have a status that the description knows, and must survive the way into the client's types and back. Prints one line for
each call.
"""

import importlib
import io
import json
import re
import sys
import time

from api_of_server import AuthenticatedClient, Client
from api_of_server import models as m
from api_of_server.types import File

url, token, directory = sys.argv[1:4]
known = AuthenticatedClient(base_url=f"{url}/v1", token=token)
called = set()


def call(operation, status, client=known, **arguments):
    """Makes a call, and checks that its answer is what the description says. Returns the answer in the client's types."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
    module = importlib.import_module(f"api_of_server.api.default.{name}")
    answer = module.sync_detailed(client=client, **arguments)
    sent = json.loads(answer.content)
    assert answer.status_code == status, f"{operation}: {answer.status_code} and not {status}: {sent}"
    assert answer.parsed is not None, f"{operation}: the description has no status {status}"
    assert answer.parsed.to_dict() == sent, f"{operation}: {answer.parsed.to_dict()} and not {sent}"
    called.add(operation)
    print(f"{operation} {status}")
    return answer.parsed


described = call("describe", 200).to_dict()
call("createShare", 201, body=m.NewShare(name="made", directory=directory, plan="custom iops=50"))
call("createShare", 409, body=m.NewShare(name="made", directory=directory))
assert [share.name for share in call("listShares", 200).shares] == ["data", "made"]
assert call("showShare", 200, name="made").plan == "custom iops=50"
call("showShare", 404, name="none")
assert call("changeShare", 200, name="made", body=m.ShareChange(read_only=True, rules=m.RulesChange(read=["tester"]))).read_only
call("changeShare", 422, name="made", body=m.ShareChange(plan="quick"))
assert call("setQuota", 200, name="made", subject="/a b", body=m.NewQuota(soft=1 << 20, hard=1 << 21)).hard == 1 << 21
call("setQuota", 200, name="made", subject="*", body=m.NewQuota(hard=1 << 20))
call("setQuota", 422, name="made", subject="*", body=m.NewQuota())
call("setQuota", 409, name="data", subject="*", body=m.NewQuota(hard=1 << 20))
assert sorted(quota.subject for quota in call("listQuotas", 200, name="made").quotas) == ["*", "/a b"]
assert call("checkQuotas", 200, name="made").counting
call("checkQuotas", 404, name="data")
call("removeQuota", 200, name="made", subject="/a b")
call("removeQuota", 404, name="made", subject="/a b")
assert call("listRansomwareAlarms", 200, name="data").alarms == []
call("endRansomwareAlarm", 404, name="data", number=1)
call("endRansomwareAlarm", 404, name="nobody", number=1)
call("listSnapshots", 409, name="data")
call("takeSnapshot", 409, name="data", body=m.NewSnapshot(label="now"))
call("takeSnapshot", 422, name="data", body=m.NewSnapshot(label="a.b"))
call("protectSnapshot", 409, name="data", snapshot="none", body=m.SnapshotChange(protected_until=int(time.time()) + 3600))
call("revertShare", 409, name="data", body=m.SnapshotRevert(to="none"))
call("beginRestore", 409, name="data", body=m.NewRestore(from_="none", path="/a"))
call("beginRestore", 422, name="data", body=m.NewRestore(from_="none", path=".."))
call("showRestore", 404, name="data")
call("cancelRestore", 404, name="data")
call("removeSnapshot", 409, name="data", snapshot="none")
call("readReplication", 404, name="data")
call("beginReplication", 422, name="data", body=m.NewReplication(from_="ftp://a/b", token="x"))
call("changeReplication", 404, name="data", body=m.ReplicationChange(action=m.ReplicationChangeAction.NOW))
call("endReplication", 404, name="data")
assert call("listDestinations", 200, name="data").destinations == []
call("removeDestination", 404, name="data", destination="0" * 16)
call("readSource", 409, name="data")
call("beginTransfer", 409, name="data", body=m.NewTransfer(destination="0" * 16))
call("leaveSource", 404, name="data", destination="0" * 16)
call("readChanges", 404, name="data", destination="0" * 16)
call("readObjects", 404, name="data", destination="0" * 16, body=File(payload=io.BytesIO(bytes(4))))
assert call("listPools", 200).pools == []
# The server is no gateway of a cluster.
for name in "showCluster", "initCluster", "joinCluster", "listVservers", "listClusterUsers":
    call(name, 404)
for name in "leaveCluster", "drainGateway", "removeVserver", "removeClusterUser", "removeKeytab":
    call(name, 404, name="none")
call("createVserver", 404, body=m.NewVserver(name="files", addresses=["192.0.2.10"], shares=[]))
call("moveVserver", 404, name="files", body=m.VserverMove(gateway="none"))
call("addClusterUser", 404, body=m.NewUser(name="anna", password="hush-hush", uid=1000))
call("changeClusterUser", 404, name="anna", body=m.UserChange(disabled=True))
call("listVserverShares", 404, name="files")
call("addVserverShare", 404, name="files", body=m.NewShare(name="data", directory="cephfs:/files"))
call("showVserverShare", 404, name="files", share="data")
call("changeVserverShare", 404, name="files", share="data", body=m.ShareChange(read_only=True))
call("removeVserverShare", 404, name="files", share="data")
call("moveVserverShare", 404, name="files", share="data", body=m.ShareMove(vserver="more"))
call("setKeytab", 404, name="files", body=m.NewKeytab(keytab="BQI="))
call("createShare", 404, body=m.NewShare(name="pooled", pool="none", size=1 << 20))
assert call("createPolicy", 201, body=m.NewPolicy(name="office", hourly=":05/24")).hourly == ":05/24"
call("createPolicy", 422, body=m.NewPolicy(name="home", daily="1:10/14"))
assert [policy.name for policy in call("listPolicies", 200).policies] == ["office"]
call("showPolicy", 200, name="office")
assert call("changePolicy", 200, name="office", body=m.PolicyChange(daily="01:10/7")).daily == "01:10/7"
call("removePolicy", 200, name="office")
call("beginTrace", 201, name="data", body=m.NewTrace(seconds=1))
lines, is_over = "", False
while not is_over:
    part = call("takeTrace", 200, name="data")
    lines, is_over = lines + part.lines, part.over
assert call("simulate", 200, body=m.NewSimulation(plan="custom iops=1", lines=lines)).waited > 0
call("simulate", 422, body=m.NewSimulation(plan="quick", lines=lines))
assert call("showShareActivity", 200, name="data").latencies
call("activity", 200)
assert call("domain", 200).id_mapping == "rid"
call("testUser", 200, name="tester")
call("testUser", 422, name="a@b@c")
call("status", 200)
session = call("clients", 200).smb_sessions[0].to_dict()
assert call("findings", 200).clients[0].client == session["id"]
call("showClientActivity", 200, client_path=session["client_guid"])
call("advice", 200, client_path=session["id"], seconds=1)
call("advice", 422, client_path=session["id"], seconds=0)
call("files", 200, share="data")
call("files", 422, client_query="nobody")
call("closeFile", 404, id="1-999999")
call("locks", 200)
call("log", 200, after=0)
call("configuration", 200)
call("reload", 200)
call("addUser", 201, body=m.NewUser(name="anna", password="hush-hush", uid=1000, gid=1000, groups=[100]))
call("listUsers", 200)
call("showUser", 200, name="anna")
assert call("changeUser", 200, name="anna", body=m.UserChange(disabled=True)).disabled
call("removeUser", 200, name="anna")
made = call("makeToken", 201, body=m.NewToken(name="look", scope=m.NewTokenScope.READ))
call("listTokens", 200)
call("listTokens", 403, client=AuthenticatedClient(base_url=f"{url}/v1", token=made.token))
call("listTokens", 401, client=Client(base_url=f"{url}/v1"))
assert call("signedIn", 200).token == "tester"
call("signIn", 201, client=Client(base_url=f"{url}/v1"), body=m.NewSignIn(token=made.token))
call("signOut", 404)
call("removeToken", 200, name="look")
call("disconnectClient", 200, client_path=session["id"])
assert call("removeShare", 200, name="made").restorable_until > time.time()
deleted = call("listDeletedShares", 200).shares
assert [share.name for share in deleted] == ["made"]
assert call("undeleteShare", 201, id=deleted[0].id, body=m.Undelete(name="back")).plan == "custom iops=50"
call("undeleteShare", 404, id=deleted[0].id, body=m.Undelete())
call("removeShare", 200, name="back")
assert call("purgeShare", 200, id=deleted[0].id).name == "back"
call("purgeShare", 404, id=deleted[0].id)

methods = [call for path in described["paths"].values() for name, call in path.items() if name != "parameters"]
assert called == {call["operationId"] for call in methods}, {call["operationId"] for call in methods} ^ called
print(f"{len(called)} calls")
