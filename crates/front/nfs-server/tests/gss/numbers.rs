//! Users of a domain for whose numbers somebody is asked, while a context begins.

use std::sync::{Arc, Mutex};

use auth::{Ids, NumberSource, Numbering, Numbers, Reason, Unnumbered};
use krb5::Enctype;
use nfs_wire::gss::{Service, major};
use nfs_wire::v3::{Procedure, create, getattr};
use tokio::sync::oneshot;

use crate::calls::open_root;
use crate::client::{
    Context, NFS, NULL, Outcome, begun, send_first, server, ticket, token, use_keys_and_numbers,
};
use crate::mint::{PacOf, Ticket, around_pac};
use crate::server::{place, with_mode};

/// Where an answer is expected.
type Answer = oneshot::Sender<Result<Ids, Reason>>;

/// Those who are asked for, and where the answers are expected.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<(String, Answer)>>);

impl NumberSource for Asked {
    fn numbers_of(&self, user: &Unnumbered) -> Numbers {
        let (answer, comes) = oneshot::channel();
        self.0.lock().unwrap().push((user.name(), answer));
        Box::pin(async move { comes.await.unwrap_or(Err(Reason::NumbersUnavailable)) })
    }
}

/// A ticket of the domain's user alice, as of now.
fn of_domain() -> Ticket<'static> {
    let bare = ticket(&["alice"]);
    let pac = PacOf { auth_time: bare.auth_time, ..PacOf::new() };
    let authorization_data = Some(around_pac(&pac.signed(&bare.key)));
    Ticket { authorization_data, ..bare }
}

#[test]
fn a_context_begins_when_the_numbers_have_come_and_nobody_else_waits() {
    let asked = Arc::new(Asked::default());
    let server = server();
    let root = open_root(&server);
    let numbering = Numbering::Asked { source: Arc::clone(&asked) as _, domains: Vec::new() };
    use_keys_and_numbers(&server, &NFS, Enctype::Aes256Sha1, numbering);
    let mut client = server.client();
    let ticket = of_domain();
    send_first(&mut client, &token(&ticket));
    // A call of the same connection is answered meanwhile.
    client.raw(Procedure::Null, &());
    let (name, answer) = asked.0.lock().unwrap().pop().unwrap();
    assert_eq!(name, "alice@LAB.TEST");
    answer.send(Ok(Ids { uid: 10_001, gid: 10_000, groups: vec![11_000, 7] })).unwrap();
    let mut context = Context::of(&begun(&mut client).unwrap(), &ticket, Service::Integrity);
    let args = create::Args { place: place(root, "of-alice"), how: create::How::Guarded(with_mode(0o640)) };
    let made: create::Res = context.nfs(&mut client, Procedure::Create, &args);
    let object = made.unwrap().object.unwrap();
    let found: getattr::Res = context.nfs(&mut client, Procedure::GetAttr, &getattr::Args { object });
    let attributes = found.unwrap().object_attributes;
    assert_eq!((attributes.uid, attributes.gid), (10_001, 10_000));
}

#[test]
fn no_context_begins_without_numbers_and_the_client_may_try_again() {
    let asked = Arc::new(Asked::default());
    let server = server();
    let numbering = Numbering::Asked { source: Arc::clone(&asked) as _, domains: Vec::new() };
    use_keys_and_numbers(&server, &NFS, Enctype::Aes256Sha1, numbering);
    let mut client = server.client();
    let ids = |uid, gid| Ok(Ids { uid, gid, groups: Vec::new() });
    for answer in [Err(Reason::NumbersUnavailable), Err(Reason::NoNumber), ids(0, 10_000), ids(10_001, 999)] {
        send_first(&mut client, &token(&of_domain()));
        client.raw(Procedure::Null, &()); // the ticket has been looked at
        let (_, asking) = asked.0.lock().unwrap().pop().unwrap();
        asking.send(answer.clone()).unwrap();
        let refused = begun(&mut client).unwrap();
        assert_eq!((refused.major, refused.handle.len()), (major::FAILURE, 0), "{answer:?}");
    }
    let ticket = of_domain();
    send_first(&mut client, &token(&ticket));
    client.raw(Procedure::Null, &());
    let (_, asking) = asked.0.lock().unwrap().pop().unwrap();
    asking.send(ids(1000, 1000)).unwrap();
    let mut context = Context::of(&begun(&mut client).unwrap(), &ticket, Service::Privacy);
    assert_eq!(context.exchange(&mut client, NULL, &()), Outcome::Ran(Vec::new()));
}
