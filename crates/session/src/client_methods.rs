//! Methods that a client with channels and one without have in common.
//!
//! The four clients are types of their own, each with its own page of documentation; macros define the methods that would
//! otherwise be written four times.

/// Methods of a polled client, which has the field `driver` and the method `drive`.
macro_rules! polled_client_methods {
    () => {
        /// Receives datagrams, handles expired timers, and sends what is due. Call it once per frame.
        pub fn poll(&mut self) {
            let now = self.driver.begin_frame();
            self.drive(now);
        }

        /// Waits until a datagram arrives, a timer expires, or `timeout` has passed. For loops without frames.
        pub fn wait(&mut self, timeout: std::time::Duration) {
            self.driver.wait(timeout);
        }

        /// Whether messages can be sent.
        #[must_use]
        pub fn is_connected(&self) -> bool {
            self.client().is_connected()
        }

        /// Whether the client is closed for good: once the pending events are polled, no others follow.
        #[must_use]
        pub fn is_closed(&self) -> bool {
            self.client().is_closed()
        }

        /// Current round-trip time, loss and throughput of the connection, while there is one.
        #[must_use]
        pub fn stats(&self) -> Option<rallypoint_session_proto::ConnectionStats> {
            self.client().connection().map(rallypoint_session_proto::Connection::stats)
        }

        /// The connection, while there is one: address, encryption, statistics.
        #[must_use]
        pub fn connection(&self) -> Option<&rallypoint_session_proto::Connection> {
            self.client().connection()
        }

        /// Calls a function with the connection, if there is one. The async client has the same call.
        pub fn with_connection<R>(&self, read: impl FnOnce(&rallypoint_session_proto::Connection) -> R) -> Option<R> {
            self.connection().map(read)
        }

        /// Whether messages are encrypted, while there is a connection.
        #[must_use]
        pub fn is_encrypted(&self) -> Option<bool> {
            self.with_connection(rallypoint_session_proto::Connection::is_encrypted)
        }

        /// The server's address.
        #[must_use]
        pub fn server(&self) -> std::net::SocketAddr {
            self.client().server()
        }

        /// The local address of the socket.
        #[must_use]
        pub fn local_addr(&self) -> std::net::SocketAddr {
            // There is always one socket.
            self.driver.local_addrs().next().unwrap_or_else(|| ([0, 0, 0, 0], 0).into())
        }

        /// Starts to simulate a bad network, or stops.
        pub fn set_link_conditions(&mut self, conditions: Option<crate::LinkConditions>) {
            self.driver.set_link_conditions(conditions);
        }
    };
}
pub(crate) use polled_client_methods;

/// Methods of an async client, whose field `driver` is the task of its polled client.
#[cfg(feature = "async")]
macro_rules! async_client_methods {
    () => {
        /// Ends the session: delivers the messages that are left, disconnects, and waits until that is done, for a few seconds
        /// at most.
        ///
        /// # Errors
        /// If the server has not acknowledged everything that was sent, in this session or in an earlier one.
        pub async fn close(self) -> Result<(), crate::NotAcknowledged> {
            self.driver.command(|client| client.close());
            self.driver
                .wait_for(crate::client_task::ClientInterest::Closed, |client| client.is_closed().then_some(()))
                .await;
            let is_delivered = self.is_delivered();
            self.driver.stop().await;
            if is_delivered { Ok(()) } else { Err(crate::NotAcknowledged) }
        }

        /// Current round-trip time, loss and throughput of the connection, while there is one.
        #[must_use]
        pub fn stats(&self) -> Option<rallypoint_session_proto::ConnectionStats> {
            self.driver.with(|client| client.stats())
        }

        /// Calls a function with the connection, if there is one: address, encryption, statistics. It must not call the client.
        pub fn with_connection<R>(&self, read: impl FnOnce(&rallypoint_session_proto::Connection) -> R) -> Option<R> {
            self.driver.with(|client| client.with_connection(read))
        }

        /// Whether messages are encrypted, while there is a connection.
        #[must_use]
        pub fn is_encrypted(&self) -> Option<bool> {
            self.driver.with(|client| client.is_encrypted())
        }

        /// Whether the server has acknowledged every message that was sent, in this session and in earlier ones. In channels,
        /// messages that were replaced or have expired do not count.
        #[must_use]
        pub fn is_delivered(&self) -> bool {
            self.driver.with(|client| client.is_delivered())
        }

        /// Whether messages can be sent.
        #[must_use]
        pub fn is_connected(&self) -> bool {
            self.driver.with(|client| client.is_connected())
        }

        /// Whether the client is closed for good: once the pending events are polled, no others follow.
        #[must_use]
        pub fn is_closed(&self) -> bool {
            self.driver.with(|client| client.is_closed())
        }

        /// The server's address.
        #[must_use]
        pub fn server(&self) -> std::net::SocketAddr {
            self.driver.with(|client| client.server())
        }

        /// The local address of the socket.
        #[must_use]
        pub fn local_addr(&self) -> std::net::SocketAddr {
            self.driver.with(|client| client.local_addr())
        }

        /// Starts to simulate a bad network, or stops.
        pub fn set_link_conditions(&self, conditions: Option<crate::LinkConditions>) {
            self.driver.command(|client| client.set_link_conditions(conditions));
        }
    };
}
#[cfg(feature = "async")]
pub(crate) use async_client_methods;
