//! The last result of probing each server, and the memory that the replies take.

use super::answer_budget::{AnswerBudget, AnswerCharge};
use crate::verify::VerificationResult;
use rallypoint_limit::Site;
use rallypoint_lobby_proto::PublicId;
use std::collections::HashMap;

/// Maximum number of early results.
const MAX_EARLY: usize = 1_024;

type Results = HashMap<PublicId, (VerificationResult, AnswerCharge)>;

/// Probe results by server. They outlive changes of the registration.
///
/// A server that is listed because it replies can be probed before it is in the table. Such *early* results are kept for one to
/// two minutes. All of them together have the share of one network, because theirs is not known yet.
#[derive(Debug)]
pub(super) struct ProbeResults {
    by_server: Results,
    /// Early results of this period and of the one before.
    early: [Results; 2],
    answers: AnswerBudget,
}

impl ProbeResults {
    /// No results. The replies among them may take this many bytes.
    pub fn new(answer_bytes: usize) -> Self {
        Self { by_server: HashMap::new(), early: Default::default(), answers: AnswerBudget::new(answer_bytes) }
    }

    /// Keeps the result for a server in the table, as far as there is memory for its reply.
    pub fn insert(&mut self, network: Option<Site>, mut result: VerificationResult) -> &VerificationResult {
        self.remove(result.id);
        let charge = self.charge(network, &mut result);
        &self.by_server.entry(result.id).insert_entry((result, charge)).into_mut().0
    }

    /// Keeps the result for a server that is not in the table yet.
    pub fn insert_early(&mut self, mut result: VerificationResult) {
        self.take_early(result.id);
        if self.early.iter().map(HashMap::len).sum::<usize>() < MAX_EARLY {
            let charge = self.charge(None, &mut result);
            self.early[0].insert(result.id, (result, charge));
        }
    }

    /// The result for a server in the table. An early one is charged to its network now.
    pub fn get(&mut self, id: PublicId, network: Option<Site>) -> Option<&VerificationResult> {
        if let Some(early) = self.take_early(id) {
            return Some(self.insert(network, early));
        }
        self.by_server.get(&id).map(|(result, _)| result)
    }

    /// Forgets the result for a server that has left the table.
    pub fn remove(&mut self, id: PublicId) {
        if let Some((_, charge)) = self.by_server.remove(&id) {
            self.answers.release(charge);
        }
    }

    /// Ends a period: early results of the one before are forgotten.
    pub fn end_period(&mut self) {
        self.early.rotate_right(1);
        let [current, _] = &mut self.early;
        let Self { answers, .. } = self;
        current.drain().for_each(|(_, (_, charge))| answers.release(charge));
    }

    fn take_early(&mut self, id: PublicId) -> Option<VerificationResult> {
        let (result, charge) = self.early.iter_mut().find_map(|early| early.remove(&id))?;
        self.answers.release(charge);
        Some(result)
    }

    fn charge(&mut self, network: Option<Site>, result: &mut VerificationResult) -> AnswerCharge {
        let (info, charge) = self.answers.charge(network, result.info.take());
        result.info = info;
        charge
    }

    /// Number of results.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_server.len() + self.early.iter().map(HashMap::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Verification;
    use rallypoint_query_proto::{Player, ServerInfo};
    use std::sync::Arc;

    /// The result for a server that replied with 255 players.
    fn result(number: u32) -> VerificationResult {
        let player = Player { name: "\u{20ac}".repeat(32), ..Player::default() };
        let info = ServerInfo { player_list: Some(vec![player; 255]), ..ServerInfo::default() };
        let id = PublicId::from_bytes(u128::from(number).to_be_bytes());
        VerificationResult { info: Some(Arc::new(info)), ..VerificationResult::new(id, Verification::Verified) }
    }

    #[test]
    fn early_results_are_forgotten_after_the_next_period() {
        let mut results = ProbeResults::new(8 << 20);
        results.insert_early(result(1));
        results.end_period();
        results.insert_early(result(2));
        assert_eq!(results.len(), 2);
        results.end_period();
        assert_eq!(results.len(), 1);
        results.end_period();
        assert_eq!(results.len(), 0);
        assert!(results.answers.is_empty());
    }

    #[test]
    fn early_results_leave_memory_for_the_servers_in_the_table() {
        let mut results = ProbeResults::new(8 << 20);
        for number in 0..4 * MAX_EARLY as u32 {
            results.insert_early(result(number));
        }
        assert_eq!(results.len(), MAX_EARLY);
        let network = Some(Site::of([203, 0, 113, 1].into()));
        let kept = results.insert(network, result(1_000_000));
        assert!(kept.info.as_ref().is_some_and(|info| info.player_list.is_some()));
    }

    /// A server can reply with more each time that it is queried.
    #[test]
    fn replies_that_grow_with_every_query_stay_within_the_budget() {
        const MAX: usize = 8 << 20;
        let mut results = ProbeResults::new(MAX);
        for players in (0..=255).step_by(15) {
            for number in 0..500_u32 {
                let mut result = result(number);
                if let Some(list) = result.info.as_mut().and_then(|info| Arc::make_mut(info).player_list.as_mut()) {
                    list.truncate(players);
                }
                results.insert(Some(Site::of([203, 0, number as u8, 1].into())), result);
            }
            assert!(results.answers.used() <= MAX && results.len() == 500);
        }
        (0..500).for_each(|number| results.remove(result(number).id));
        assert!(results.answers.is_empty());
    }

    #[test]
    fn an_early_result_is_charged_to_the_network_of_its_server() {
        let mut results = ProbeResults::new(8 << 20);
        results.insert_early(result(1));
        let network = Some(Site::of([203, 0, 113, 1].into()));
        let id = result(1).id;
        assert_eq!(results.get(id, network).map(|result| result.verification), Some(Verification::Verified));
        results.end_period();
        results.end_period();
        assert!(results.get(id, network).is_some());
        results.remove(id);
        assert!(results.answers.is_empty());
    }
}
