//! The negotiated attributes of a session, and the connections that belong to its channels (RFC 8881 2.10.3, 18.34,
//! 18.36).

use nfs_wire::v4::bind_conn_to_session::{ClientDirection, ServerDirection};
use nfs_wire::v4::create_session::ChannelAttributes;
use nfs_wire::v4::status::Status;

/// The smallest request and reply, in bytes, with which a channel is of any use: an RPC header with an AUTH_SYS
/// credential, SEQUENCE and one further operation.
pub const MESSAGE_BYTES_MIN: u32 = 128;

/// The fewest operations of a COMPOUND: SEQUENCE and one further operation.
pub const OPERATIONS_MIN: u32 = 2;

/// The most that a session may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Slots.
    pub slots_max: u32,
    /// Operations of a COMPOUND.
    pub operations_max: u32,
    /// Bytes of a request.
    pub request_bytes_max: u32,
    /// Bytes of a reply.
    pub response_bytes_max: u32,
    /// Bytes of a cached reply.
    pub kept_bytes_max: u32,
    /// Bytes of cached replies of all sessions together. Sessions that are created late get fewer slots.
    pub all_kept_bytes_max: u64,
    /// Connections.
    pub connections_max: usize,
}

impl Default for SessionLimits {
    /// 256 slots, more than any client asks for by default (Linux: 64), and READ and WRITE of 1 MiB.
    fn default() -> Self {
        Self {
            slots_max: 256,
            operations_max: 64,
            request_bytes_max: (1 << 20) + 8 * 1024,
            response_bytes_max: (1 << 20) + 8 * 1024,
            kept_bytes_max: 4 * 1024,
            all_kept_bytes_max: 512 << 20,
            connections_max: 256,
        }
    }
}

/// The fore channel of a session whose client asks for these attributes, while the other sessions may keep replies of
/// `reserved` bytes.
///
/// # Errors
/// [`Status::TooSmall`] for a channel that could carry no request (RFC 8881 18.36.3, `ca_maxresponsesize`).
pub fn fore_channel(
    asked: &ChannelAttributes,
    limits: &SessionLimits,
    reserved: u64,
) -> Result<ChannelAttributes, Status> {
    check_size(asked)?;
    let response_cached_bytes_max =
        asked.response_cached_bytes_max.min(limits.kept_bytes_max).min(asked.response_bytes_max);
    // Each new session gets at most an eighth of what is left, so that something is always left for the next one.
    let left = limits.all_kept_bytes_max.saturating_sub(reserved) / 8;
    let affordable = left.checked_div(response_cached_bytes_max.into()).unwrap_or(left);
    let affordable = u32::try_from(affordable).unwrap_or(u32::MAX).max(1);
    Ok(ChannelAttributes {
        header_pad_bytes: 0,
        request_bytes_max: asked.request_bytes_max.min(limits.request_bytes_max),
        response_bytes_max: asked.response_bytes_max.min(limits.response_bytes_max),
        response_cached_bytes_max,
        operations_max: asked.operations_max.clamp(OPERATIONS_MIN, limits.operations_max),
        requests_max: asked.requests_max.clamp(1, limits.slots_max).min(affordable),
        rdma_ird: None,
    })
}

/// The most bytes of replies that a session with this fore channel may cache in this many slots.
#[must_use]
pub fn kept_bytes_max(fore: &ChannelAttributes, slots: u32) -> u64 {
    u64::from(fore.response_cached_bytes_max).saturating_mul(slots.into())
}

/// How many slots a session with this fore channel is to use while there are this many sessions. The sessions share one
/// half of the memory for cached replies, so that the other half is there for new sessions. The result is at least one,
/// and at most the number of slots that was negotiated.
#[must_use]
pub fn slots_among(fore: &ChannelAttributes, limits: &SessionLimits, sessions: usize) -> u32 {
    let sessions = u64::try_from(sessions).unwrap_or(u64::MAX);
    let part = (limits.all_kept_bytes_max / 2).checked_div(sessions).unwrap_or(u64::MAX);
    let slots = part.checked_div(fore.response_cached_bytes_max.into()).unwrap_or(u64::MAX);
    u32::try_from(slots).unwrap_or(u32::MAX).clamp(1, fore.requests_max.max(1))
}

/// The back channel: what the client offers ("the server MUST NOT change the value the client offers" of operations and
/// slots, RFC 8881 18.36.3).
///
/// # Errors
/// [`Status::TooSmall`] for a channel that could carry no request.
pub fn back_channel(offered: &ChannelAttributes) -> Result<ChannelAttributes, Status> {
    check_size(offered)?;
    if offered.operations_max < OPERATIONS_MIN || offered.requests_max == 0 {
        return Err(Status::TooSmall);
    }
    Ok(ChannelAttributes { header_pad_bytes: 0, rdma_ird: None, ..*offered })
}

fn check_size(asked: &ChannelAttributes) -> Result<(), Status> {
    let least = asked.request_bytes_max.min(asked.response_bytes_max);
    if least < MESSAGE_BYTES_MIN { Err(Status::TooSmall) } else { Ok(()) }
}

/// A connection, by a number that no other connection of this run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(pub u64);

/// Which channels of a session a connection is associated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// The connection carries requests of the client.
    pub fore: bool,
    /// The connection carries requests of the server.
    pub back: bool,
}

impl Channels {
    /// The fore channel only.
    pub const FORE: Self = Self { fore: true, back: false };
    /// Both channels.
    pub const BOTH: Self = Self { fore: true, back: true };
    /// The back channel only.
    pub const BACK: Self = Self { fore: false, back: true };

    /// What BIND_CONN_TO_SESSION gives a client that asks for this direction.
    fn asked(direction: ClientDirection) -> Self {
        match direction {
            ClientDirection::Fore => Self::FORE,
            ClientDirection::Back => Self::BACK,
            ClientDirection::ForeOrBoth | ClientDirection::BackOrBoth => Self::BOTH,
        }
    }

    /// The channels in the terms of BIND_CONN_TO_SESSION.
    #[must_use]
    pub fn direction(self) -> ServerDirection {
        match (self.fore, self.back) {
            (_, false) => ServerDirection::Fore,
            (false, true) => ServerDirection::Back,
            (true, true) => ServerDirection::Both,
        }
    }
}

/// The connections of one session: any number up to a limit, from any address (nconnect, session trunking).
#[derive(Debug, Default)]
pub struct Associations(Vec<(ConnectionNumber, Channels)>);

impl Associations {
    /// The channels that a connection is associated with.
    #[must_use]
    pub fn channels(&self, connection: ConnectionNumber) -> Option<Channels> {
        self.0.iter().find(|(known, _)| *known == connection).map(|(_, channels)| *channels)
    }

    /// SEQUENCE over a connection: "the connection is automatically associated with the fore channel" (RFC 8881
    /// 2.10.3.1). Returns false when the session has too many connections; the request is served all the same.
    pub fn used(&mut self, connection: ConnectionNumber, limits: &SessionLimits) -> bool {
        self.channels(connection).is_some() || self.add(connection, Channels::FORE, limits)
    }

    /// CREATE_SESSION over a connection.
    pub fn created(&mut self, connection: ConnectionNumber, channels: Channels, limits: &SessionLimits) {
        self.add(connection, channels, limits);
    }

    /// BIND_CONN_TO_SESSION. Returns the channels that the connection is associated with from now on.
    ///
    /// # Errors
    /// [`Status::Inval`] if the client would remove a channel: "demanding changes to the set of channels" (RFC 8881
    /// 18.34.3). Adding the back channel is allowed: a client does that with a connection that SEQUENCE has bound
    /// before. [`Status::ServerFault`] when the session has as many connections as it may have.
    pub fn bind(
        &mut self,
        connection: ConnectionNumber,
        direction: ClientDirection,
        limits: &SessionLimits,
    ) -> Result<Channels, Status> {
        let asked = Channels::asked(direction);
        let Some((_, channels)) = self.0.iter_mut().find(|(known, _)| *known == connection) else {
            return if self.add(connection, asked, limits) { Ok(asked) } else { Err(Status::ServerFault) };
        };
        if (channels.fore && !asked.fore) || (channels.back && !asked.back) {
            return Err(Status::Inval);
        }
        *channels = asked;
        Ok(asked)
    }

    fn add(&mut self, connection: ConnectionNumber, channels: Channels, limits: &SessionLimits) -> bool {
        let room = self.0.len() < limits.connections_max;
        if room {
            self.0.push((connection, channels));
        }
        room
    }

    /// A connection has ended. Returns true if it was the last one of the back channel.
    pub fn ended(&mut self, connection: ConnectionNumber) -> bool {
        let had_back = self.has_back();
        self.0.retain(|(known, _)| *known != connection);
        had_back && !self.has_back()
    }

    /// Whether any connection carries the back channel.
    #[must_use]
    pub fn has_back(&self) -> bool {
        self.back().next().is_some()
    }

    /// The connections that carry the back channel.
    pub fn back(&self) -> impl Iterator<Item = ConnectionNumber> {
        self.0.iter().filter(|(_, channels)| channels.back).map(|(connection, _)| *connection)
    }

    /// All connections.
    pub fn all(&self) -> impl Iterator<Item = ConnectionNumber> {
        self.0.iter().map(|(connection, _)| *connection)
    }

    /// How many connections there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Linux 6.1 asks for with rsize=wsize=1 MiB.
    const LINUX: ChannelAttributes = ChannelAttributes {
        header_pad_bytes: 0,
        request_bytes_max: 1_049_620,
        response_bytes_max: 1_049_480,
        response_cached_bytes_max: 7_584,
        operations_max: 8,
        requests_max: 64,
        rdma_ird: None,
    };

    #[test]
    fn a_channel_is_what_is_asked_for_within_the_limits() {
        let limits = SessionLimits::default();
        let fore = fore_channel(&LINUX, &limits, 0).unwrap();
        assert_eq!(fore, ChannelAttributes { response_cached_bytes_max: 4096, ..LINUX });
        let greedy = ChannelAttributes {
            header_pad_bytes: 512,
            request_bytes_max: u32::MAX,
            response_bytes_max: u32::MAX,
            response_cached_bytes_max: u32::MAX,
            operations_max: u32::MAX,
            requests_max: u32::MAX,
            rdma_ird: Some(9),
        };
        let fore = fore_channel(&greedy, &limits, 0).unwrap();
        assert_eq!((fore.requests_max, fore.operations_max), (256, 64));
        assert_eq!((fore.header_pad_bytes, fore.rdma_ird), (0, None));
        assert_eq!(fore.request_bytes_max, limits.request_bytes_max);
        let none = ChannelAttributes { operations_max: 0, requests_max: 0, ..LINUX };
        let fore = fore_channel(&none, &limits, 0).unwrap();
        assert_eq!((fore.requests_max, fore.operations_max), (1, 2));
    }

    #[test]
    fn a_channel_that_is_too_small_is_refused() {
        for (request_bytes_max, response_bytes_max, fits) in
            [(128, 128, true), (127, 8192, false), (8192, 127, false), (0, 0, false)]
        {
            let asked = ChannelAttributes { request_bytes_max, response_bytes_max, ..LINUX };
            assert_eq!(fore_channel(&asked, &SessionLimits::default(), 0).is_ok(), fits);
            assert_eq!(back_channel(&asked).is_ok(), fits);
        }
        assert_eq!(back_channel(&LINUX), Ok(LINUX));
        let one = ChannelAttributes { operations_max: 1, ..LINUX };
        assert_eq!(back_channel(&one), Err(Status::TooSmall), "no room for anything behind CB_SEQUENCE");
        let no_slots = ChannelAttributes { requests_max: 0, ..LINUX };
        assert_eq!(back_channel(&no_slots), Err(Status::TooSmall));
    }

    #[test]
    fn however_many_come_the_replies_that_may_be_kept_are_bounded() {
        let limits = SessionLimits { all_kept_bytes_max: 1 << 20, ..SessionLimits::default() };
        let (mut reserved, mut fewest) = (0, u32::MAX);
        for _ in 0..10_000 {
            let fore = fore_channel(&LINUX, &limits, reserved).unwrap();
            fewest = fewest.min(fore.requests_max);
            reserved += kept_bytes_max(&fore, fore.requests_max);
        }
        assert_eq!(fewest, 1, "there is always one");
        let without_limit = 10_000 * u64::from(limits.kept_bytes_max);
        assert!(reserved < (1 << 20) + without_limit, "{reserved}");
    }

    #[test]
    fn slots_are_shared_out_when_there_are_many_sessions() {
        let (limits, fore) =
            (SessionLimits::default(), ChannelAttributes { response_cached_bytes_max: 4096, ..LINUX });
        let slots = |sessions| slots_among(&fore, &limits, sessions);
        assert_eq!([0, 1, 1024, 1025, 10_000, usize::MAX].map(slots), [64, 64, 64, 63, 6, 1]);
        let keeps_nothing = ChannelAttributes { response_cached_bytes_max: 0, ..LINUX };
        assert_eq!(slots_among(&keeps_nothing, &limits, usize::MAX), 64);
    }

    #[test]
    fn connections_are_bound_by_use_and_by_request() {
        let (limits, mut session) =
            (SessionLimits { connections_max: 3, ..SessionLimits::default() }, Associations::default());
        let [a, b, c, d] = [1, 2, 3, 4].map(ConnectionNumber);
        session.created(a, Channels::BOTH, &limits);
        assert!(session.used(b, &limits) && session.used(b, &limits));
        assert_eq!((session.channels(a), session.channels(b)), (Some(Channels::BOTH), Some(Channels::FORE)));
        assert_eq!(session.bind(c, ClientDirection::Back, &limits), Ok(Channels::BACK));
        assert_eq!(session.back().collect::<Vec<_>>(), [a, c]);
        assert!(!session.used(d, &limits), "three are enough");
        assert_eq!(session.bind(d, ClientDirection::Fore, &limits), Err(Status::ServerFault));
        assert!(!session.ended(a));
        assert!(session.ended(c), "the last one of the back channel");
        assert_eq!(session.len(), 1);
    }

    #[test]
    fn a_connection_keeps_its_channels() {
        let (limits, mut session) = (SessionLimits::default(), Associations::default());
        let connection = ConnectionNumber(1);
        session.used(connection, &limits);
        assert_eq!(session.bind(connection, ClientDirection::Fore, &limits), Ok(Channels::FORE));
        assert_eq!(session.bind(connection, ClientDirection::Back, &limits), Err(Status::Inval));
        assert_eq!(session.bind(connection, ClientDirection::ForeOrBoth, &limits), Ok(Channels::BOTH));
        assert_eq!(session.bind(connection, ClientDirection::Fore, &limits), Err(Status::Inval));
        assert_eq!(Channels::BOTH.direction(), ServerDirection::Both);
        assert_eq!(Channels::BACK.direction(), ServerDirection::Back);
    }
}
