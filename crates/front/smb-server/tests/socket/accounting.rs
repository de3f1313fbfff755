//! What a share's requests are counted as.

use anabranch_smb_server::Config;
use smb_wire::create::CreateDisposition;

use crate::client::TestServer;

#[test]
fn requests_are_counted_in_their_share() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    client.write(file, 0, &[1; 5000]).unwrap();
    client.read(file, 0, 3000).unwrap();
    client.read(file, 9000, 1).unwrap_err();
    client.close(file).unwrap();
    let count = |api| {
        let counts = server.share.accounting().total("smb", api);
        (counts.calls, counts.errors, counts.bytes)
    };
    assert_eq!(count("TreeConnect"), (1, 0, 0));
    assert_eq!(count("Create"), (1, 0, 0));
    assert_eq!(count("Write"), (1, 0, 5000));
    assert_eq!(count("Read"), (2, 1, 3000));
    assert_eq!(count("Close"), (1, 0, 0));
}
