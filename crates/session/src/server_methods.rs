//! Methods that a server with channels and one without have in common, defined as those of the clients are
//! ([`client_methods`](crate::client_methods)).

/// Methods of a polled server, which has the fields `driver`, `events` and `readable`, and the methods `drive` and `recv`.
macro_rules! polled_server_methods {
    ($message:ty) => {
        /// Receives datagrams, handles expired timers, and sends what is due. Call it once per frame.
        pub fn poll(&mut self) {
            let now = self.driver.begin_frame();
            self.drive(now);
        }

        /// Waits until a datagram arrives, a timer expires, or `timeout` has passed. For loops without frames.
        pub fn wait(&mut self, timeout: std::time::Duration) {
            self.driver.wait(timeout);
        }

        /// The next event. With [`ServerEvent::Message`](crate::ServerEvent::Message), the message is copied into `message`.
        /// Players with several messages take turns.
        pub fn next_event(&mut self, message: &mut $message) -> Option<crate::ServerEvent> {
            loop {
                if self.has_event()
                    && let Some(event) = self.events.pop_front()
                {
                    return Some(event);
                }
                let player = self.readable.pop_front()?;
                if self.recv(player, message) {
                    self.readable.push_back(player);
                    return Some(crate::ServerEvent::Message(player));
                }
                // Reading the last message may have raised an event.
            }
        }

        /// The next player who has logged in. Other events are dropped, for callers that read messages player by player.
        #[cfg(feature = "async")]
        pub(crate) fn next_player(&mut self) -> Option<crate::NewPlayer> {
            while self.has_event() {
                self.readable.clear();
                if let Some(crate::ServerEvent::Connected(new)) = self.events.pop_front() {
                    return Some(new);
                }
            }
            None
        }

        /// Current round-trip time, loss and throughput of a player's connection.
        #[must_use]
        pub fn stats(&self, player: crate::PlayerId) -> Option<crate::ConnectionStats> {
            self.connection(player).map(crate::Connection::stats)
        }

        /// A player's connection: address, encryption, statistics.
        #[must_use]
        pub fn connection(&self, player: crate::PlayerId) -> Option<&crate::Connection> {
            self.driver.machine().connection(player)
        }

        /// Calls a function with a player's connection, if there is one. The async server has the same call.
        pub fn with_connection<R>(
            &self,
            player: crate::PlayerId,
            read: impl FnOnce(&crate::Connection) -> R,
        ) -> Option<R> {
            self.connection(player).map(read)
        }

        /// The current address of a player. A player can claim the address of another host, so use
        /// [`validated_addr`](Self::validated_addr) for anything with consequences for an address.
        #[must_use]
        pub fn peer_addr(&self, player: crate::PlayerId) -> Option<std::net::SocketAddr> {
            self.with_connection(player, crate::Connection::peer)
        }

        /// The last validated address of a player: at first that of the login (S31).
        #[must_use]
        pub fn validated_addr(&self, player: crate::PlayerId) -> Option<std::net::SocketAddr> {
            self.with_connection(player, crate::Connection::validated_peer)
        }

        /// Whether a player's messages are encrypted.
        #[must_use]
        pub fn is_encrypted(&self, player: crate::PlayerId) -> Option<bool> {
            self.with_connection(player, crate::Connection::is_encrypted)
        }

        /// Disconnects all players with this reason, and returns when that is done, after a few seconds at most. For the end of a
        /// program: a game loop that goes on calls [`disconnect_all`](Self::disconnect_all), and then [`poll`](Self::poll).
        pub fn shutdown(mut self, reason: &str) {
            self.disconnect_all(reason);
            let deadline = rallypoint_udp::clock::now() + Self::SHUTDOWN_TIMEOUT;
            loop {
                self.poll();
                // Events are read and dropped: unread ones would keep the sessions of players who have left.
                while self.has_event() {
                    self.events.clear();
                    self.readable.clear();
                }
                let left = deadline.saturating_duration_since(rallypoint_udp::clock::now());
                // Queues are sent first; and a player may log in only now. So this may time out.
                if !self.has_sessions() || left.is_zero() {
                    return;
                }
                self.wait(left);
            }
        }

        /// Counters of the whole server.
        #[must_use]
        pub fn endpoint_stats(&self) -> crate::EndpointStats {
            self.driver.machine().stats()
        }

        /// Sets the description that queries are answered with.
        pub fn set_info(&mut self, info: &crate::ServerInfo) {
            let rallypoint_query_proto::SessionReplies { infos, players } =
                rallypoint_query_proto::SessionReplies::new(info);
            let replies = rallypoint_session_proto::QueryReplies::new(infos, players);
            self.driver.machine_mut().set_query_replies(replies);
        }

        /// The addresses that the server listens on, with the actual ports.
        pub fn local_addrs(&self) -> impl Iterator<Item = std::net::SocketAddr> {
            self.driver.local_addrs()
        }

        /// Starts to simulate a bad network, or stops.
        pub fn set_link_conditions(&mut self, conditions: Option<crate::LinkConditions>) {
            self.driver.set_link_conditions(conditions);
        }
    };
}
pub(crate) use polled_server_methods;

/// Methods of an async server, whose field `driver` is the task of its polled server.
#[cfg(feature = "async")]
macro_rules! async_server_methods {
    () => {
        /// Current round-trip time, loss and throughput of a player's connection.
        #[must_use]
        pub fn stats(&self, player: crate::PlayerId) -> Option<crate::ConnectionStats> {
            self.driver.with(|server| server.stats(player))
        }

        /// Calls a function with a player's connection, if there is one: address, encryption, statistics. It must not call the
        /// server.
        pub fn with_connection<R>(
            &self,
            player: crate::PlayerId,
            read: impl FnOnce(&crate::Connection) -> R,
        ) -> Option<R> {
            self.driver.with(|server| server.with_connection(player, read))
        }

        /// The current address of a player. A player can claim the address of another host, so use
        /// [`validated_addr`](Self::validated_addr) for anything with consequences for an address.
        #[must_use]
        pub fn peer_addr(&self, player: crate::PlayerId) -> Option<std::net::SocketAddr> {
            self.with_connection(player, crate::Connection::peer)
        }

        /// The last validated address of a player: at first that of the login (S31).
        #[must_use]
        pub fn validated_addr(&self, player: crate::PlayerId) -> Option<std::net::SocketAddr> {
            self.with_connection(player, crate::Connection::validated_peer)
        }

        /// Whether a player's messages are encrypted.
        #[must_use]
        pub fn is_encrypted(&self, player: crate::PlayerId) -> Option<bool> {
            self.with_connection(player, crate::Connection::is_encrypted)
        }

        /// Ends all sessions, also of players who are not accepted yet, as [`disconnect`](Self::disconnect) does one.
        pub fn disconnect_all(&self, reason: &str) {
            self.driver.command(|server| server.disconnect_all(reason));
        }

        /// Disconnects all players with this reason, and waits until that is done, for a few seconds at most.
        pub async fn shutdown(self, reason: &str) {
            self.disconnect_all(reason);
            let is_empty = self
                .driver
                .wait_for(crate::server_task::ServerInterest::Empty, |server| (!server.has_sessions()).then_some(()));
            // Queues are sent first; and a player may log in only now. So this may time out.
            let _ = tokio::time::timeout(Self::SHUTDOWN_TIMEOUT, is_empty).await;
            self.driver.stop().await;
        }

        /// Counters of the whole server.
        #[must_use]
        pub fn endpoint_stats(&self) -> crate::EndpointStats {
            self.driver.with(|server| server.endpoint_stats())
        }

        /// Sets the description that queries are answered with.
        pub fn set_info(&self, info: &crate::ServerInfo) {
            self.driver.with(|server| server.set_info(info));
        }

        /// The addresses that the server listens on, with the actual ports.
        #[must_use]
        pub fn local_addrs(&self) -> Vec<std::net::SocketAddr> {
            self.driver.with(|server| server.local_addrs().collect())
        }

        /// Starts to simulate a bad network, or stops.
        pub fn set_link_conditions(&self, conditions: Option<crate::LinkConditions>) {
            self.driver.command(|server| server.set_link_conditions(conditions));
        }
    };
}
#[cfg(feature = "async")]
pub(crate) use async_server_methods;
